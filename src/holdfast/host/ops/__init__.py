"""What clients may ask of the host, one file per family; `operations` joins them."""
