"""Operations of the work plane: a file for each of its rooms. Imports `holdfast.api` and `model` alone."""
