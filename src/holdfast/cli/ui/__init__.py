"""What commands share: arguments, printing, texts. Imports no command."""
