"""Where the work is kept: SQLite or PostgreSQL behind one interface, and the migrations of both."""
