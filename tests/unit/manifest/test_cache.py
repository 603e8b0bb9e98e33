"""Decoded manifests are cached by location, and only missing parts are read."""

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import attrgetter

import pytest
from foreign_manifests import read
from icefield.abc import PutMode
from icefield.base.concurrency import LruCache
from icefield.errors import InvalidArgument, InvalidMetadata
from icefield.manifest import (
    ALL_COLUMNS,
    ManifestContent,
    ManifestEntries,
    ManifestReader,
    ManifestRequest,
    clear_caches,
    resize_caches,
)
from icefield.manifest import schemas as f
from icefield.manifest.cache import FILES
from icefield.manifest.decoded import MANIFESTS, STATISTICS
from icefield.types import LongType, StructType
from icefield.types.arrow.pieces import are_neighbours
from icefield.types.values import from_bytes_array
from planned_tables import PlannedTable
from tables import manifests, new_table, rows


def shares_columns(found: ManifestEntries | None, entries: ManifestEntries) -> bool:
    """Whether entries consist of the same arrays as others, so that nothing was decoded again."""
    return found is not None and all(entries.columns[number] is array for number, array in found.columns.items())


@pytest.fixture
def made() -> PlannedTable:
    return PlannedTable()


def test_a_manifest_is_decoded_until_all_of_it_is_known_and_fetched_once(made: PlannedTable) -> None:
    manifest = made.write([made.file(bounds={"id": (1, 9)})]).assigned(1000, 1)
    clear_caches()
    opened = made.io.opened  # type: ignore[attr-defined]
    opened.clear()
    reader = ManifestReader(made.io)
    assert reader.cached(manifest, StructType()) is None
    first = reader.read(manifest, StructType())
    assert shares_columns(reader.read(manifest, StructType()), first)
    assert shares_columns(reader.cached(manifest, StructType(), ManifestRequest(frozenset({f.FILE_PATH}))), first)
    assert len(opened) == 1
    single = {f.LOWER_BOUNDS: frozenset({1})}
    assert reader.cached(manifest, StructType(), ManifestRequest(statistics=single)) is None
    more = reader.read(manifest, StructType(), ManifestRequest(statistics=single))
    assert more.statistic(f.LOWER_BOUNDS, 1).to_pylist() == [struct.pack("<q", 1)]
    assert set(first.columns) <= set(more.columns)
    assert shares_columns(reader.read(manifest, StructType(), ManifestRequest(statistics=single)), more)
    whole = reader.read(manifest, StructType(), ManifestRequest(ALL_COLUMNS))
    assert whole.statistic(f.UPPER_BOUNDS, 1).to_pylist() == [struct.pack("<q", 9)]
    assert len(opened) == 1
    assert shares_columns(reader.cached(manifest, StructType(), ManifestRequest(ALL_COLUMNS)), whole)
    clear_caches()
    assert reader.cached(manifest, StructType()) is None


def test_what_files_delete_may_be_read_before_where_they_are() -> None:
    """Only the paths are read from a delete manifest whose contents are cached already."""
    table = new_table(properties={"format-version": "2", "write.delete.mode": "merge-on-read"})
    table.append(rows([1, 2, 3]))
    table.delete("id = 1")
    deletes = next(each for each in manifests(table) if each.content is ManifestContent.DELETES)
    clear_caches()
    reader = ManifestReader(table.io)
    for number in (f.CONTENT, f.FILE_PATH):
        found = reader.read(deletes, StructType(), ManifestRequest(frozenset({number})))
    assert found.column(f.CONTENT).to_pylist() == [1]
    assert len(found.column(f.FILE_PATH).to_pylist()) == 1


def test_the_same_manifest_under_another_sequence_number_is_another(made: PlannedTable) -> None:
    manifest = made.write([made.file()])
    for number in (3, 4):
        entries = read(made, manifest.assigned(1000, number))
        assert entries.column(f.SEQUENCE_NUMBER).to_pylist() == [number]


def test_file_ios_of_other_properties_share_nothing(made: PlannedTable) -> None:
    manifest = made.write([made.file()]).assigned(1000, 1)
    clear_caches()
    ManifestReader(made.io).read(manifest, StructType())
    for properties in ({"token": "other"}, {"io.manifest.cache-enabled": "false"}):
        other = type(made.io)(made.io.plugins, properties)
        assert ManifestReader(other).cached(manifest, StructType()) is None
    other.opened.clear()
    for _ in range(2):
        ManifestReader(other).read(manifest, StructType())
    assert len(other.opened) == 2
    assert ManifestReader(type(made.io)(made.io.plugins)).cached(manifest, StructType()) is not None


@pytest.fixture
def small_cache() -> Iterator[Callable[[int], None]]:
    """Resize the cache for one test."""
    clear_caches()
    yield resize_caches
    resize_caches()


def test_manifests_read_in_order_again_and_again_hit_the_cache_as_far_as_it_reaches(
    made: PlannedTable, small_cache: Callable[[int], None]
) -> None:
    manifests = [made.write([made.file() for _ in range(20)]).assigned(1000, 1) for _ in range(6)]
    ManifestReader(made.io).read(manifests[0], StructType())
    capacity = MANIFESTS.size * 7 // 2
    small_cache(capacity)
    for _ in range(3):
        kept = [ManifestReader(made.io).cached(manifest, StructType()) is not None for manifest in manifests]
        for manifest in manifests:
            ManifestReader(made.io).read(manifest, StructType())
            assert MANIFESTS.size <= capacity
    assert kept == [True] * 3 + [False] * 3
    small_cache(0)
    assert MANIFESTS.size == len(MANIFESTS) == 0


def test_manifests_read_twice_displace_manifests_that_are_no_longer_read(
    made: PlannedTable, small_cache: Callable[[int], None]
) -> None:
    old, new = ([made.write([made.file() for _ in range(20)]).assigned(1000, 1) for _ in range(3)] for _ in range(2))
    reader = ManifestReader(made.io)
    reader.read(old[0], StructType())
    small_cache(MANIFESTS.size * 7 // 2)
    for manifest in [*old, *old, *new]:
        reader.read(manifest, StructType())
    assert all(reader.cached(manifest, StructType()) for manifest in old)
    for manifest in [*new, *new]:
        reader.read(manifest, StructType())
    assert all(reader.cached(manifest, StructType()) for manifest in new)
    assert not any(reader.cached(manifest, StructType()) for manifest in old)


def test_a_repeated_filter_reads_no_manifest_again_when_only_its_own_columns_fit(
    made: PlannedTable, small_cache: Callable[[int], None]
) -> None:
    for number in range(8):
        files = [made.file(bounds={"id": (100 * number + i, 100 * number + i)}) for i in range(50)]
        made.add(files)
    made.commit()
    scan = made.scan("id = 301")
    scan.plan_arrow()
    small_cache(MANIFESTS.size // 2)
    clear_caches()
    opened = made.io.opened  # type: ignore[attr-defined]
    for _ in range(3):
        opened.clear()
        assert scan.plan_arrow().num_rows == 1
        FILES.clear()
    # The manifest of the matching file at most, of 8.
    assert len([path for path in opened if "-m0" in path]) <= 1


def test_whole_statistics_displace_no_columns_of_plans_and_stay_within_a_share_of_the_cache(
    made: PlannedTable, small_cache: Callable[[int], None]
) -> None:
    request = ManifestRequest(ALL_COLUMNS)
    manifests = [made.write([made.file(bounds={"id": (i, i)}) for i in range(20)]).assigned(1000, 1) for _ in range(8)]
    reader = ManifestReader(made.io)
    for manifest in manifests:
        reader.read(manifest, StructType(), request)
    assert all(reader.cached(manifest, StructType(), request) for manifest in manifests)
    capacity = MANIFESTS.size * 9 // 8
    assert STATISTICS.size > capacity // 8
    small_cache(capacity)
    for _ in range(3):
        for manifest in manifests:
            reader.read(manifest, StructType(), request)
            assert STATISTICS.size <= capacity // 8
    assert all(reader.cached(manifest, StructType()) for manifest in manifests)
    assert not all(reader.cached(manifest, StructType(), request) for manifest in manifests)
    small_cache(0)
    assert len(STATISTICS) == 0


@pytest.mark.spec("MAN-25")
def test_counts_are_read_only_where_an_entry_has_no_bounds_and_then_in_one_go(made: PlannedTable) -> None:
    bounded = [made.write([made.file(bounds={"id": (1, 9)}) for _ in range(3)]).assigned(1000, 1) for _ in range(2)]
    mixed = made.write([made.file(bounds={"id": (1, 9)}), made.file(nulls={"id": 100})]).assigned(1000, 1)
    bare = made.write([made.file()]).assigned(1000, 1)
    one = frozenset({1})
    request = ManifestRequest(
        statistics={f.LOWER_BOUNDS: one, f.UPPER_BOUNDS: one},
        where_unbounded={f.NULL_VALUE_COUNTS: one, f.VALUE_COUNTS: one},
    )
    clear_caches()
    opened = made.io.opened  # type: ignore[attr-defined]
    opened.clear()
    reader = ManifestReader(made.io)
    counts = []
    for manifest in (bounded[0], mixed, bare, bounded[1]):
        entries = reader.read(manifest, StructType(), request)
        assert shares_columns(reader.read(manifest, StructType(), request), entries)
        assert shares_columns(reader.cached(manifest, StructType(), request), entries)
        found = entries.statistic(f.NULL_VALUE_COUNTS, 1)
        counts.append(None if found is None else found.to_pylist())
    # After one manifest without bounds, the counts of later manifests are read together with the other statistics.
    assert counts == [None, [0, 100], None, [0, 0, 0]]
    assert opened == [m.manifest_path for m in (bounded[0], mixed, bare, bounded[1])]
    # A manifest with complete bounds stays complete, and counts are read when a request names them.
    full = ManifestRequest(statistics={**request.statistics, **request.where_unbounded})
    assert reader.cached(bounded[0], StructType(), full) is None
    assert reader.read(bounded[0], StructType(), full).statistic(f.VALUE_COUNTS, 1).to_pylist() == [100] * 3
    assert len(opened) == 4, "the file is kept"


def test_a_damaged_manifest_is_fetched_again(made: PlannedTable) -> None:
    """The damage may have happened during the transfer."""
    manifest = made.write([made.file()]).assigned(1000, 1)
    clear_caches()
    sound = made.io.read(manifest.manifest_path)
    opened = made.io.opened  # type: ignore[attr-defined]
    made.io.put(manifest.manifest_path, sound[:-20] + bytes(20), PutMode.OVERWRITE)
    reader = ManifestReader(made.io)
    with pytest.raises(InvalidMetadata):
        reader.read(manifest, StructType())
    made.io.put(manifest.manifest_path, sound, PutMode.OVERWRITE)
    opened.clear()
    assert len(reader.read(manifest, StructType())) == 1
    assert opened == [manifest.manifest_path]


def test_files_are_kept_until_they_are_decoded_whole_and_in_no_more_bytes_than_they_may(made: PlannedTable) -> None:
    manifest = made.write([made.file()]).assigned(1000, 1)
    clear_caches()
    reader = ManifestReader(made.io)
    reader.read(manifest, StructType(), ManifestRequest(ALL_COLUMNS))
    assert len(FILES) == 0
    clear_caches()
    reader.read(manifest, StructType())
    assert FILES.size == manifest.manifest_length
    try:
        resize_caches(0)
        assert len(FILES) == 0
        reader.read(manifest, StructType(), ManifestRequest(statistics={f.LOWER_BOUNDS: frozenset({1})}))
        assert len(FILES) == 0
    finally:
        resize_caches()


class Sized:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def test_a_cache_weighs_what_it_is_given_again_and_does_not_take_what_is_too_large() -> None:
    cache: LruCache[str, Sized] = LruCache(100, attrgetter("nbytes"))
    small, large = Sized(40), Sized(101)
    cache.put("a", small)
    cache.put("b", Sized(60))
    assert cache.size == 100
    small.nbytes = 90
    cache.put("a", small)
    assert (cache.size, cache.get("b"), cache.get("a")) == (90, None, small)
    cache.put("a", large)
    assert (cache.size, len(cache), cache.get("a")) == (0, 0, None)
    with pytest.raises(InvalidArgument):
        resize_caches(-1)


def test_statistics_of_manifests_whose_other_columns_are_cached_are_decoded_together(made: PlannedTable) -> None:
    typed = [
        (made.write([made.file(bounds={"id": (i, i + j)}) for j in range(20)]).assigned(1000, 1), StructType())
        for i in range(4)
    ]
    reader, request, nothing = ManifestReader(made.io), ManifestRequest(ALL_COLUMNS), [None] * 4
    whole = ManifestEntries.concat(reader.read_together(typed, request, nothing))
    STATISTICS.clear()
    again = reader.read_together(typed, request, nothing)
    assert list(ManifestEntries.concat(again).data_files()) == list(whole.data_files())
    assert all(shares_columns(reader.cached(*one), entries) for one, entries in zip(typed, again, strict=True))
    assert all(are_neighbours(*pair) for pair in pairwise(one.columns[f.VALUE_COUNTS] for one in again))


def test_a_bound_that_was_asked_for_before_it_was_read_is_found_once_it_is_read(made: PlannedTable) -> None:
    manifest = made.write([made.file(bounds={"id": (1, 9)})]).assigned(1000, 1)
    reader = ManifestReader(made.io)

    def least(request: ManifestRequest) -> list[int] | None:
        found = reader.read(manifest, StructType(), request).bound(f.LOWER_BOUNDS, 1, LongType(), from_bytes_array)
        return None if found is None else found.to_pylist()

    assert least(ManifestRequest()) is None
    assert least(ManifestRequest(statistics={f.LOWER_BOUNDS: frozenset({1})})) == [1]
    assert least(ManifestRequest(ALL_COLUMNS)) == [1]
