"""Encrypted tables behind a REST server that has no access to their keys, and one that plans with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from encrypted_tables import MASTER, SCHEMA, clear_caches, ids, keystore, rows
from icefield import load_catalog
from icefield.errors import IcefieldError
from rest_process import serving
from table_readers import READERS, comparable, two_tables

pytestmark = pytest.mark.slow


def test_a_server_without_keys_serves_encrypted_tables(tmp_path: Path) -> None:
    behind = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    given = {"encryption.kms-type": "local", "encryption.local.keystore": str(keystore(tmp_path))}
    with serving(behind) as uri, load_catalog("client", type="rest", uri=uri, **given) as client:
        client.create_namespace("db")
        table = client.create_table("db.t", SCHEMA, properties={"encryption.key-id": MASTER})
        table.append(rows(0))
        table.append(rows(100))
        table.delete("id = 5")
        table.encryption.rotate()
        table.append(rows(200))
        assert ids(client.load_table("db.t")) == [n for n in range(300) if n != 5]
        table.maintenance.expire_snapshots(older_than=table.metadata.last_updated_ms + 1, retain_last=1)
        assert ids(client.load_table("db.t")) == [n for n in range(300) if n != 5]
        assert client.load_table("db.t").encryption.status().is_complete
        without = load_catalog("other", type="rest", uri=uri).load_table("db.t")
        clear_caches()
        with pytest.raises(IcefieldError, match="key service"):
            without.scan().to_arrow()
        planned = load_catalog("planned", type="rest", uri=uri, **{"scan-planning-mode": "server"}).load_table("db.t")
        with pytest.raises(IcefieldError):
            planned.scan().to_arrow()


def test_a_server_with_keys_plans_for_clients_without_a_key_service(tmp_path: Path) -> None:
    behind = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
        "encryption.kms-type": "local",
        "encryption.local.keystore": str(keystore(tmp_path)),
    }
    with load_catalog("served", **behind) as catalog:
        catalog.create_namespace("db")
        table = catalog.create_table("db.t", SCHEMA, properties={"encryption.key-id": MASTER})
        table.append(rows(0))
        table.delete("id = 5")
    with serving(behind) as uri:
        clear_caches()
        client = load_catalog("client", type="rest", uri=uri, **{"scan-planning-mode": "server"})
        assert len(client.load_table("db.t").scan().to_arrow()) == 99


PLANNED_HERE = {
    *(name for name in READERS if "changes" in name or name == "updates"),
    *("entries", "partition statistics", "partitions"),
}
"""Readers that read manifests or statistics themselves, whoever plans scans."""

NOT_SERVED = {"plan", "positions and row ids"}
"""Plans of a service state no commits, and row ids of updated rows need them."""


def test_every_reader_gives_the_rows_of_a_plain_table_over_rest(tmp_path: Path) -> None:
    given = {"encryption.kms-type": "local", "encryption.local.keystore": str(keystore(tmp_path))}
    behind = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    with serving({**behind, **given}) as uri, load_catalog("client", type="rest", uri=uri, **given) as client:
        tables = two_tables(client)
        for name, reader in READERS.items():
            clear_caches()
            assert comparable(reader(tables.encrypted)) == comparable(reader(tables.plain)), name
        planned = load_catalog("planned", type="rest", uri=uri, **{"scan-planning-mode": "server"})
        for name, reader in READERS.items():
            clear_caches()
            if name in PLANNED_HERE:
                with pytest.raises(Exception, match="no key service"):  # DuckDB has an error of its own
                    reader(planned.load_table("db.e"))
            elif name not in NOT_SERVED:
                assert comparable(reader(planned.load_table("db.e"))) == comparable(reader(tables.plain)), name
