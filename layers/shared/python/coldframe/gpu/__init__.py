"""An encoder on a GPU. Imported only where the setting `device` asks for one: no function on Lambda does."""
