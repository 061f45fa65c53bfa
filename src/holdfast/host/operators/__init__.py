"""Who is calling; operators, grants, tokens, browser logins."""
