"""Read a configuration's tables from a TOML file, a JSON file of the 2018 code or a preset, and apply overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuroevo.config import uber2018
from neuroevo.core.errors import UserError
from neuroevo.core.problems import inline, nearest
from neuroevo.core.user_module import name_of
from neuroevo.system.files import nearest_file
from neuroevo.system.reading import parse_json, parse_toml, read_text


def read(path: Path | str, overrides: Sequence[str] | Mapping[str, Any] = ()) -> uber2018.Translation:
    """Read the tables of a file or preset and apply overrides.

    Args:
        path: A TOML file, a JSON file of the 2018 code (its name ends in .json), or a preset's name.
        overrides: Changes to keys, such as "training.seed=3", or values by keys, applied in this order.

    Returns:
        The tables, and for a 2018 file its own key names and the problems of its translation, except for overridden
        keys.

    Raises:
        UserError: The file cannot be read, is not TOML (or not a JSON object of the 2018 code's keys, if its name ends
            in .json), or an override is not KEY=VALUE.
    """
    return parse(text_of(path), path, overrides)[0]


def parse(
    text: str, path: Path | str, overrides: Sequence[str] | Mapping[str, Any] = ()
) -> tuple[uber2018.Translation, list[str]]:
    """Parse the text of a configuration file and apply overrides.

    Args:
        text: The file's text.
        path: The file, for messages; its suffix determines the format.
        overrides: As for read().

    Returns:
        The result of read(), and the overridden keys.

    Raises:
        UserError: As read().
    """
    if Path(path).suffix == ".json":
        read = uber2018.translate(_json(text, path))
    else:
        try:
            read = uber2018.Translation(parse_toml(text))
        except ValueError as error:
            raise UserError(f"{path} is not valid TOML: {error}") from None
    changed = apply_all(read.tables, overrides)
    for key in changed:
        theirs = read.names.pop(key, None)  # the file's value is replaced
        read.problems[:] = [problem for problem in read.problems if problem.key != theirs]
    return read, changed


def apply_all(tables: dict[str, Any], overrides: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Apply overrides to the tables, in their order.

    Args:
        tables: The configuration's tables, which are changed.
        overrides: Strings as for apply(), or values by keys, such as {"training.seed": 3}.

    Returns:
        The overridden keys.

    Raises:
        UserError: An override is malformed, or its key is not in a table.
    """
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            set_key(tables, str(key), name_object(str(key), value), f"the override {key!r}")
        return list(map(str, overrides))
    if isinstance(overrides, (str, Path)):
        raise UserError(
            f"overrides are {str(overrides)!r}, expected a list or a mapping, such as {{'training.seed': 3}}"
        )
    return [apply(tables, override) for override in overrides]


def name_object(key: str, value: Any) -> Any:
    """Return a key's value, with a class or function replaced by its name "module:name".

    Args:
        key: SECTION.KEY.
        value: The key's value. For env.name, a class or function makes a Gymnasium environment.

    Raises:
        UserError: The class or function cannot be imported.
    """
    name = name_of(value)
    return f"gymnasium:{name}" if key == "env.name" and name is not value else name


def set_key(tables: dict[str, Any], key: str, value: Any, said: str) -> None:
    """Set a key of the tables.

    Args:
        tables: The configuration's tables, which are changed.
        key: SECTION.KEY.
        value: The key's value.
        said: The override as the user wrote it, for messages.

    Raises:
        UserError: The key does not have this form, or is not in a table.
    """
    parts = key.split(".")
    if not all(parts) or len(parts) < 2:
        raise UserError(f"{said}: expected SECTION.KEY, such as training.seed")
    table = tables
    for depth, part in enumerate(parts[:-1]):
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise UserError(f"{said}: {'.'.join(parts[: depth + 1])} is {inline(table)}, not a table")
    table[parts[-1]] = value


def key_of(override: str) -> str:
    """Return the key of an override SECTION.KEY=VALUE; the result is arbitrary for a malformed one."""
    return override.partition("=")[0].strip()


def apply(tables: dict[str, Any], override: str) -> str:
    """Apply one override to the tables.

    Args:
        tables: The configuration's tables, which are changed.
        override: SECTION.KEY=VALUE. The value is TOML; an invalid value is used as a string, unless it contains quotes,
            brackets, braces or an equals sign.

    Returns:
        The key, SECTION.KEY.

    Raises:
        UserError: The override does not have this form, or its key is not in a table.
    """
    key, value = key_of(override), override.partition("=")[2].strip()
    if "=" not in override or not all(key.split(".")) or "." not in key:
        raise UserError(f"--set {override}: expected SECTION.KEY=VALUE, such as training.seed=3")
    try:
        parsed = parse_toml(f"value = {value}")
    except ValueError as error:
        if not value or any(character in value for character in "\"'[]{}\n="):
            raise UserError(f"--set {override}: the value is not valid TOML: {error}") from None
        parsed = {"value": value}
    if set(parsed) != {"value"}:
        raise UserError(f"--set {override}: expected one value")
    set_key(tables, key, parsed["value"], f"--set {override}")
    return key


def text_of(path: Path | str) -> str:
    """Return the text of a file or preset.

    Args:
        path: As for read().

    Raises:
        UserError: The file cannot be read.
    """
    expected = "expected a TOML file, a preset's name, or a JSON file of the 2018 code"
    if not str(path):
        raise UserError(f"the configuration's name is empty, {expected}")
    named = presets()
    file = named[str(path)] if str(path) in named and not Path(path).is_file() else Path(path)
    try:
        return read_text(file)
    except FileNotFoundError:
        near = nearest(file.stem, named)
        hint = nearest_file(file, (".toml", ".json")) or (f"; did you mean the preset {near}?" if near else "")
        if file.name == str(path) and not file.suffix:
            raise UserError(
                f"there is no configuration file or preset {path}{hint} (presets: {', '.join(named)})"
            ) from None
        raise UserError(f"there is no configuration file {path}{hint}") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, {expected}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    except ValueError:  # the path contains a null byte
        raise UserError(f"{str(path)!r} is not a valid file name, {expected}") from None


def _json(text: str, path: Path | str) -> dict[str, Any]:
    try:
        values = parse_json(text, nan=True)  # NaN is reported as a problem of its key
    except ValueError as error:
        raise UserError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(values, dict):
        keys = ", ".join(list(uber2018.KEYS)[:3])
        raise UserError(
            f"{path} holds {_KINDS[type(values)]}: expected an object with the 2018 code's keys ({keys}, ...)"
        )
    if "env_id" in values and "game" not in values:
        raise UserError(
            f"{path} is a file of the 2018 code for clusters, whose keys are not translated; expected a file of the "
            "2018 code for GPUs, with game and model"
        )
    return values


_KINDS = {list: "a list", str: "a string", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}


_FOLDER = Path(__file__).with_name("presets")


def presets() -> dict[str, Path]:
    """Return the file of each preset by its name, sorted by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}


def description(path: Path) -> str:
    """Return the description of a preset: the first line of its file, a comment."""
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("#").strip()
