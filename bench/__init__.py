"""Side-by-side measurements: Holdfast and its peers in the same run, on the same machine."""
