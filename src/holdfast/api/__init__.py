"""The host's API as code: one class per operation.

A class's fields are the request, its type parameter is the reply, its keywords are its row: the right that it needs,
whether it may be repeated, what it changes. Whatever the host, the isolated session's socket and the clients know of
an operation, they read from its row. Operations stand in one namespace, in a file for each room of the host (`work/`:
for each room of the work plane). Imports `model` alone; clients load neither `typing` nor `msgspec` with it.
"""
