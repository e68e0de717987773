"""An encoder on a GPU. Imported only where the setting `device` requires one: no function on Lambda does."""
