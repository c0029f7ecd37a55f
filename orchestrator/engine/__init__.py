"""Where the driver and the workers run: behind one Protocol, on Docker or as plain processes."""
