"""Settings from environment variables."""

from pathlib import Path

import pytest

from coldframe.config import ENVIRONMENT_NAMES, Settings, load_settings
from coldframe.errors import BadSetting


def test_defaults() -> None:
    """An empty environment gives the defaults."""
    assert load_settings({}) == Settings()


def test_every_kind_is_read() -> None:
    """Paths, numbers, booleans and words are read from their variables; other variables are ignored."""
    settings = load_settings(
        {
            "COLDFRAME_MODEL_DIR": "/somewhere",
            "COLDFRAME_MAX_TEXTS": "7",
            "COLDFRAME_VERIFY_AT_INIT": "false",
            "COLDFRAME_LOG_LEVEL": "off",
            "COLDFRAME_CACHE_TABLE": "any name at all",
            "COLDFRAME_CACHE_POLICY": "always",
            "COLDFRAME_THREADS": "",
            "PATH": "/bin",
        }
    )
    assert settings == Settings(
        model_dir=Path("/somewhere"),
        max_texts=7,
        verify_at_init=False,
        log_level="off",
        cache_table="any name at all",
        cache_policy="always",
    )


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        (
            "COLDFRAME_MAX_TEXTS",
            "many",
            "COLDFRAME_MAX_TEXTS='many' cannot be used. Expected `int`, got `str`.",
        ),
        ("COLDFRAME_THREADS", "0", "COLDFRAME_THREADS='0' cannot be used. Expected `int` >= 1."),
        (
            "COLDFRAME_VERIFY_AT_INIT",
            "maybe",
            "COLDFRAME_VERIFY_AT_INIT='maybe' cannot be used. Expected",
        ),
        ("COLDFRAME_LOG_LEVEL", "loud", "COLDFRAME_LOG_LEVEL='loud' cannot be used. Invalid enum value"),
        (
            "COLDFRAME_CACHE_POLICY",
            "never",
            "COLDFRAME_CACHE_POLICY='never' cannot be used. Invalid",
        ),
        (
            "COLDFRAME_CACHE_DEADLINE_MS",
            "0",
            "COLDFRAME_CACHE_DEADLINE_MS='0' cannot be used. Expected `int`",
        ),
        (
            "COLDFRAME_MAX_TXTS",
            "1",
            "COLDFRAME_MAX_TXTS is not a setting. Use one of: COLDFRAME_CACHE_BUCKET",
        ),
    ],
)
def test_bad_values(name: str, value: str, expected: str) -> None:
    """A value that cannot be used is named, with what was expected."""
    with pytest.raises(BadSetting) as raised:
        load_settings({name: value})
    assert str(raised.value).startswith(expected)


def test_training_data_is_nobody_elses_business() -> None:
    """The variable that training reads does not disturb serving."""
    assert load_settings({"COLDFRAME_DATA": "/somewhere"}) == Settings()


def test_settings_do_not_change() -> None:
    """Settings are frozen: what was read at init holds for the life of the environment."""
    settings = Settings()
    with pytest.raises(AttributeError, match="immutable"):
        settings.max_texts = 1  # type: ignore[misc]


def test_names_follow_the_fields() -> None:
    """Every field is a variable, and nothing else is."""
    assert {f"COLDFRAME_{name.upper()}" for name in Settings.__struct_fields__} == ENVIRONMENT_NAMES
