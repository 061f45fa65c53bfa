"""Files on the client's side: snapshots, git, holdfast.toml, orphans."""
