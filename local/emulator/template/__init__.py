"""SAM templates as settings of the emulator: resources, event sources and stores."""
