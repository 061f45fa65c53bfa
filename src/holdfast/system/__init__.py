"""What hosts and keepers both need of the operating system: whole files, process facts. Standard library only."""
