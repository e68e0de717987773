"""Model folders: trained heads unpacked, sealed with a manifest, and put in place as a whole."""
