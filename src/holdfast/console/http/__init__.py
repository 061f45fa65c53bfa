"""HTTP: routes, callers, headers, the API description."""
