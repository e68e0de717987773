"""Files of texts, predicted on one machine: read, answered in parts by all cores, written in order."""
