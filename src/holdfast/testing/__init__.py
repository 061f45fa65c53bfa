"""Public fakes and conformance suites for programs that build on Holdfast. The package itself never imports it."""
