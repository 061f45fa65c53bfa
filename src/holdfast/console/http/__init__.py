"""HTTP itself: routes, callers, headers, the document."""
