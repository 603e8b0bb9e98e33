"""No part of a database's password is shown: in an error, its repr, its pickled form, its causes, a log, a catalog."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from icefield import Catalog, load_catalog
from icefield.errors import IcefieldError, InvalidArgument, StorageError
from icefield_cli.main import main

# None of these has a password whose end is certain; "tail7351" is what a naive reader takes for the host.
UNESCAPED = [
    "postgresql+psycopg://user:head7351@tail7351@127.0.0.1:1/db",
    "postgresql+psycopg://user:head7351@mid7351@tail7351@127.0.0.1:1/db",
    "postgresql+psycopg://user:head7351@tail7351@127.0.0.1/db?options=x",
    "postgresql+psycopg://user:head7351/mid7351@tail7351@127.0.0.1:1/db",
    "postgresql+psycopg://user:head7351/tail7351@127.0.0.1:1/db",
    "postgresql+psycopg://user:head7351?tail7351@127.0.0.1:1/db",
    "postgresql+psycopg://user:head7351#tail7351@127.0.0.1:1/db",
    "postgresql+psycopg://user:head7351@tail7351/mid7351@127.0.0.1:1/db",
    "postgresql+psycopg://user:@tail7351@127.0.0.1:1/db",
    "postgresql+psycopg://user@me7351:head7351@tail7351@127.0.0.1:1/db",
    "postgresql+psycopg://127.0.0.1:1/db?user=me&password=head7351@tail7351",
    "postgresql+psycopg://user:head7351@tail7351:port/db",
    "sqlite://user:head7351@tail7351/db",
    "head7351@tail7351",
    "user:head7351@tail7351@127.0.0.1",
    "nosuch://user:head7351@tail7351@127.0.0.1/db",
]
ESCAPED = [
    "postgresql+psycopg://user:head7351%40tail7351@127.0.0.1:1/db",
    "postgresql+psycopg://user:head7351%2Ftail7351%3F@127.0.0.1:1/db",
    "postgresql+psycopg://127.0.0.1:1/db?user=me&password=head7351%40tail7351",
    "postgresql+psycopg://127.0.0.1:1/db?user=me&sslmode=head7351&password=tail7351",
]


def shown(error: BaseException) -> Iterator[str]:
    """Everything that an error shows, of itself and of whatever led to it."""
    seen: set[int] = set()
    rest: list[BaseException | None] = [error]
    while rest:
        found = rest.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        yield from (str(found), repr(found), repr(found.args), repr(getattr(found, "data", None)))
        rest += [found.__cause__, found.__context__]
    yield "".join(traceback.format_exception(error))
    again = pickle.loads(pickle.dumps(error))
    yield from (str(again), repr(again), pickle.dumps(error).decode("latin-1"))


def used(uri: str, folder: Path) -> BaseException:
    """The error that a use of the catalog ends in, the first one."""

    def use() -> None:
        catalog = load_catalog("test", type="sql", uri=uri, warehouse=f"file://{folder}/w")
        say(catalog)
        catalog.list_namespaces()

    def say(catalog: Catalog) -> None:
        for text in (repr(catalog), repr(catalog._backend), repr(catalog.io), str(catalog._backend.credentials())):
            assert "7351" not in text

    with pytest.raises(IcefieldError) as caught:
        use()
    return caught.value


@pytest.mark.parametrize("uri", UNESCAPED)
def test_a_password_whose_end_is_not_certain_is_refused_and_not_shown(
    uri: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    error = used(uri, tmp_path)
    assert isinstance(error, InvalidArgument | StorageError)
    assert not [text for text in shown(error) if "7351" in text]
    if uri.startswith("postgresql+psycopg") and not uri.endswith(":port/db"):
        assert "%40 for '@'" in str(error)
    given = ["-p", "type=sql", "-p", f"uri={uri}", "-p", f"warehouse=file://{tmp_path}/w"]
    for command in ("namespaces", "doctor"):
        assert main([command, *given]) == 1
    assert "7351" not in "".join(capsys.readouterr()) + caplog.text


@pytest.mark.parametrize("uri", ESCAPED)
def test_a_password_that_is_escaped_is_not_shown_either(
    uri: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    error = used(uri, tmp_path)
    assert isinstance(error, StorageError)
    found = [text for text in shown(error) if "tail7351" in text or "head7351%" in text or "head7351@" in text]
    assert not found
    assert "tail7351" not in caplog.text


def test_a_password_with_every_character_that_must_be_escaped_opens_the_database(postgres: str, tmp_path: Path) -> None:
    from servers.postgres import new_database
    from sqlalchemy import create_engine, make_url, text

    url = make_url(new_database(postgres))
    password, role = "p@ss:w/or?d#%40", f"odd_{uuid4().hex}"  # roles belong to the server, which other tests use too
    with create_engine(url, isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD '{password}'"))
    try:
        uri = url.set(username=role, password=password).render_as_string(hide_password=False)
        with load_catalog("test", type="sql", uri=uri, warehouse=f"file://{tmp_path}/w") as catalog:
            catalog.create_namespace("db")
            assert catalog.list_namespaces() == [("db",)]
    finally:
        with create_engine(url, isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text(f"REASSIGN OWNED BY {role} TO CURRENT_USER"))
            connection.execute(text(f"DROP ROLE {role}"))
