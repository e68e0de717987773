"""SAM templates as the emulator's settings: resources, event sources and stores."""
