"""Words of three languages, which a small model tells apart."""

_SAID = {
    "deutsch": "die Rechnung der Zug nach Köln fährt heute über Straße Brücke und Können bitte",
    "english": "the parcel arrived late and please change my order thanks for your account",
    "русский": "код подтверждения не приходит весной река выходит из берегов и заливает луга",
}
WORDS = {label: said.split() for label, said in _SAID.items()}
ENCODER, MODEL = "random", "languages"  # of the model that tests/support/other_model.py trains
