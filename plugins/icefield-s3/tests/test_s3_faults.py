"""Faults between the plugin and the server, the number of requests, and stores that do not keep their word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from uuid import uuid4

import pyarrow as pa
import pytest
from fsspec.asyn import sync
from http_between import Answered, Asked, Between, Forward, answer
from icefield import load_catalog
from icefield.abc import FileSystem, PutMode
from icefield.errors import AccessDenied, StorageError
from icefield_maintenance.doctor import Result, examine
from icefield_s3.client import PARALLEL, S3Client
from icefield_s3.s3_file_system import S3FileSystem
from icefield_s3.settings import settings_of
from servers.s3 import S3
from store_faults import DATA, PART, KilledCommits, StoreFaults
from store_requests import StoreRequests

NAMES = ["a b", "a%20b", "a?b=c", "a#b", "a//b", "/a", "a/..b", ".a", "ü-日本-🧊", "a+b&c", "a\\b", "[x]{y}*~'\"<>"]


class InSmallParts(S3FileSystem):
    """The plugin with parts of a size that Amazon's store would refuse, so that the tests need no large files."""

    def connect(self) -> S3Client:
        return S3Client(replace(settings_of(self.properties), write_part=PART))


class OnServer:
    """A bucket that is reached through what stands between."""

    prefix = "s3"
    preloaded = ("icefield_s3.s3_file_system", "s3fs", "aiobotocore.session", "aiobotocore.httpsession")

    @pytest.fixture
    def between(self, s3: S3) -> Iterator[Between]:
        self.s3 = s3
        with Between(s3.url).open() as between:
            yield between

    @pytest.fixture
    def root(self, s3: S3) -> str:
        return f"s3://{s3.bucket}/{uuid4().hex}"

    def reached(self, url: str) -> Mapping[str, str]:
        return S3(url).properties


class TestCommitsUnderALock(OnServer, KilledCommits):
    commit = "dynamodb-lock"
    first_step = 3  # the files of the snapshot are written before the lock is asked for

    @pytest.fixture(autouse=True)
    def lock(self, lock_properties: dict[str, str]) -> Iterator[None]:
        with Between(lock_properties["dynamodb.endpoint"]).open() as between:
            self.also_between = (between,)
            self.more_properties = {**lock_properties, "dynamodb.endpoint": between.url}
            yield


class TestCommitsDecidedByTheLocksItems(TestCommitsUnderALock):
    """On a store that is declared to have no conditional put."""

    long = True

    def reached(self, url: str) -> Mapping[str, str]:
        return {**super().reached(url), "s3.conditional-put": "false"}


class TestS3Faults(OnServer, KilledCommits, StoreFaults, StoreRequests):
    batch = 1_000
    at_a_time = PARALLEL

    def made(self, properties: Mapping[str, str]) -> FileSystem:
        system = InSmallParts(properties)
        # The SDK reads its descriptions of services for some tenths of a second: what tests time are requests.
        sync(system.fs.loop, system.fs.set_session)
        return system

    def is_put(self, asked: Asked) -> bool:
        return asked.method == "PUT" and "uploadId=" not in asked.path

    def is_part(self, asked: Asked) -> bool:
        return asked.method in ("PUT", "POST") and re.search(r"[?&](uploads|uploadId=)", asked.path) is not None

    def is_delete(self, asked: Asked) -> bool:
        return asked.method == "DELETE" or asked.path.endswith("?delete")

    def is_listing(self, asked: Asked) -> bool:
        return asked.method == "GET" and "list-type=2" in asked.path

    def without_condition(self, asked: Asked) -> Asked:
        return replace(asked, headers={name: v for name, v in asked.headers.items() if name != "if-none-match"})

    def control(self, between: Between) -> FileSystem:
        return self.system(between)

    def unpublished(self, location: str) -> int:
        return self.s3.unpublished(self._key(location))

    def raw_get(self, location: str) -> bytes | None:
        return self.s3.get(self._key(location))

    def _key(self, location: str) -> str:
        return location.split("/", 3)[3]

    # -- conditions

    def test_a_create_is_one_request_with_its_condition_whatever_its_size(self, between: Between, root: str) -> None:
        system = self.system(between)
        for size in (0, 1, 100_000, 3 * 1024 * 1024):
            between.asked.clear()
            system.put(f"{root}/{size}", bytes(size), PutMode.CREATE)
            (asked,) = between.asked
            assert (asked.method, asked.headers["if-none-match"], len(asked.body)) == ("PUT", "*", size)
            assert "expect" not in asked.headers

    def test_a_conflict_of_two_requests_at_once_is_tried_again(self, between: Between, root: str) -> None:
        """Amazon's store answers 409 when two conditional requests meet; which of them wins is not said by it."""
        body = b"<Error><Code>ConditionalRequestConflict</Code><Message>met</Message></Error>"
        between.faulty(lambda asked, forward: Answered(409, {}, body), self.is_put, 2)
        self.system(between).put(f"{root}/a", b"mine", PutMode.CREATE)
        assert self.raw_get(f"{root}/a") == b"mine"
        assert len(between.asked) == 3

    def test_a_redirected_upload_is_refused_and_says_what_to_set(self, between: Between, root: str) -> None:
        elsewhere = Answered(307, {"Location": f"{between.url}/elsewhere"})
        between.faulty(lambda asked, forward: elsewhere, self.is_put, None)
        with pytest.raises(StorageError, match=r"set s3\.region") as failed:
            self.system(between).put(f"{root}/a", b"x", PutMode.CREATE)
        assert not failed.value.retryable
        assert len(between.asked) == 1

    # -- uploads

    @pytest.mark.parametrize("name", ["lose-request", "lose-reply", "503"])
    def test_whatever_request_of_an_upload_fails_nothing_dangles(self, between: Between, root: str, name: str) -> None:
        system = self.system(between, request_timeout="2")
        for step in range(20):
            seen: list[Asked] = []

            def nth(asked: Asked, seen: list[Asked] = seen, step: int = step) -> bool:
                seen.append(asked)
                return len(seen) == step + 1

            between.faulty(self.fault(name, between), nth)
            with system.open_output(f"{root}/{step}") as sink:
                sink.write(DATA)
            assert self.raw_get(f"{root}/{step}") == DATA
            assert self.unpublished(f"{root}/{step}") == 0
            if len(seen) <= step:
                break
        assert step >= 6  # it begins, sends four parts, and is completed

    @pytest.mark.parametrize("name", ["lose-request", "lose-reply", "503"])
    def test_an_upload_that_fails_for_good_at_any_request_leaves_nothing(
        self, between: Between, root: str, name: str
    ) -> None:
        system = self.system(between, retry__num_retries="0")
        for step in range(6):
            seen: list[Asked] = []

            def nth(asked: Asked, seen: list[Asked] = seen, step: int = step) -> bool:
                # A part of the file before may still be on its way.
                mine = self.is_part(asked) and f"/{step}?" in asked.path
                seen.extend([asked] if mine else [])
                return mine and len(seen) == step + 1

            between.faulty(self.fault(name, between), nth)
            with pytest.raises(StorageError) as failed, system.open_output(f"{root}/{step}") as sink:
                sink.write(DATA)
            assert failed.value.retryable
            # Nobody can know after the last reply was lost: then the file is there, whole, under a name of its own.
            whole = step == 5 and name == "lose-reply"
            assert self.raw_get(f"{root}/{step}") == (DATA if whole else None)
            assert self.unpublished(f"{root}/{step}") == 0

    def test_an_exception_inside_a_writer_publishes_nothing_and_leaves_no_upload(
        self, between: Between, root: str
    ) -> None:
        def write() -> None:
            with self.system(between).open_output(f"{root}/large") as sink:
                sink.write(DATA)
                raise KeyError("of the caller")

        with pytest.raises(KeyError):
            write()
        assert any(self.is_part(asked) for asked in between.asked)
        assert self.raw_get(f"{root}/large") is None
        assert self.unpublished(f"{root}/large") == 0

    def test_an_upload_that_nobody_aborts_would_be_seen_by_these_tests(self, between: Between, root: str) -> None:
        sink = self.system(between).open_output(f"{root}/left")
        sink.write(DATA)
        sink.cancel = lambda: None
        sink.abort()
        assert self.unpublished(f"{root}/left") == 1

    def test_an_answer_of_success_that_holds_an_error_is_an_error(self, between: Between, root: str) -> None:
        """The store begins to answer a completion before it has done it: 200, and an error in the body."""
        body = b'<?xml version="1.0"?><Error><Code>InternalError</Code><Message>later</Message></Error>'

        def completes(asked: Asked) -> bool:
            return asked.method == "POST" and "uploadId=" in asked.path

        between.faulty(lambda asked, forward: Answered(200, {}, body), completes)
        with self.system(between).open_output(f"{root}/a") as sink:
            sink.write(DATA)
        assert self.raw_get(f"{root}/a") == DATA
        between.faulty(lambda asked, forward: Answered(200, {}, body), completes, None)
        with pytest.raises(StorageError), self.system(between).open_output(f"{root}/b") as sink:
            sink.write(DATA)
        assert self.raw_get(f"{root}/b") is None
        assert self.unpublished(f"{root}/b") == 0

    def test_several_parts_are_on_their_way_at_a_time(self, between: Between, root: str) -> None:
        waiting: list[int] = []
        now = [0]

        def slowly(asked: Asked, forward: Forward) -> Answered | None:
            now[0] += 1
            waiting.append(now[0])
            answered = answer(503)(asked, forward) if len(waiting) == 2 else forward(asked)
            now[0] -= 1
            return answered

        between.faulty(slowly, lambda asked: "partNumber=" in asked.path, None)
        with self.system(between).open_output(f"{root}/a") as sink:
            sink.write(DATA * 4)
        assert self.raw_get(f"{root}/a") == DATA * 4
        assert max(waiting) > 1

    # -- deletes

    def test_a_file_that_a_batch_did_not_delete_is_deleted_by_itself_or_stated_of(
        self, between: Between, root: str
    ) -> None:
        system = self.system(between)
        names = [f"{root}/{number}" for number in range(4)]
        for name in names:
            system.put(name, b"x", PutMode.OVERWRITE)
        errors = "".join(
            f"<Error><Key>{self._key(name)}</Key><Code>{code}</Code><Message>no</Message></Error>"
            for name, code in zip(names, ("SlowDown", "InternalError", "NoSuchKey", "AccessDenied"), strict=True)
        )
        refused = Answered(200, {"Content-Type": "application/xml"}, f"<DeleteResult>{errors}</DeleteResult>".encode())
        between.faulty(lambda asked, forward: refused, lambda asked: asked.path.endswith("?delete"))
        system.delete_many(names)
        assert [self.raw_get(name) for name in names] == [None, None, b"x", None]
        denied = answer(403)
        between.behave = lambda asked, forward: refused if asked.path.endswith("?delete") else denied(asked, forward)
        with pytest.raises(AccessDenied, match="3 more"):
            system.delete_many(names)

    @pytest.mark.parametrize("status", [400, 501])
    def test_a_store_without_batches_deletes_one_by_one(self, between: Between, root: str, status: int) -> None:
        system = self.system(between)
        names = [f"{root}/{number}" for number in range(3)]
        for name in names:
            system.put(name, b"x", PutMode.OVERWRITE)
        between.faulty(answer(status), lambda asked: asked.path.endswith("?delete"), None)
        system.delete_many(names)
        assert list(system.list_files(root)) == []

    # -- names, pages, settings that requests show

    @pytest.mark.spec("FS-12")
    @pytest.mark.parametrize("name", NAMES)
    def test_a_name_is_taken_to_the_letter(self, between: Between, root: str, name: str) -> None:
        system, location = self.system(between), f"{root}/{name}"
        data = name.encode()
        system.put(location, data, PutMode.CREATE)
        assert self.raw_get(location) == data
        assert system.open_input(location).read() == data
        assert system.stat(location).size == len(data)
        assert [info.location for info in system.list_files(root)] == [location]
        with system.open_output(f"{location}-large") as sink:
            sink.write(DATA)
        assert self.raw_get(f"{location}-large") == DATA
        system.delete_many([location, f"{location}-large"])
        assert list(system.list_files(root)) == []
        system.put(location, data, PutMode.CREATE)
        system.delete_many([location])
        assert self.raw_get(location) is None

    def test_what_some_tools_put_there_to_have_a_folder_is_no_file(self, between: Between, root: str) -> None:
        system = self.system(between)
        self.s3.put(self._key(f"{root}/folder/"), b"")
        system.put(f"{root}/folder/a", b"x", PutMode.CREATE)
        assert [info.location for info in system.list_files(root)] == [f"{root}/folder/a"]
        assert [info.location for info in system.list_files(root, shallow=True)] == [f"{root}/folder/"]
        for action in (system.stat, system.open_input, system.open_output):
            with pytest.raises(FileNotFoundError, match="is no file"):
                action(f"{root}/folder/")
        system.delete_many([f"{root}/folder/", f"{root}/folder/a"])
        assert self.raw_get(f"{root}/folder/") is None

    def test_more_files_than_a_page_holds_are_all_listed(self, between: Between, root: str) -> None:
        names = {f"{root}/{number:04}" for number in range(1_050)}
        for name in names:
            self.s3.put(self._key(name), b"")
        system = self.system(between)
        found = [info.location for info in system.list_files(root)]
        assert (set(found), len(found)) == (names, len(names))
        assert len(between.asked) == 2
        between.asked.clear()
        system.delete_many(names)
        assert len(between.asked) == 2
        assert all({"x-amz-checksum-crc32", "content-md5"} & set(asked.headers) for asked in between.asked)  # a must
        assert list(system.list_files(root)) == []

    def test_what_files_are_written_with_is_sent_with_each(self, between: Between, root: str) -> None:
        given = {"s3.sse.type": "s3", "s3.write.storage-class": "STANDARD_IA", "s3.acl": "private"}
        system = self.made({**self.properties(between), **given})
        system.put(f"{root}/small", b"x", PutMode.CREATE)
        with system.open_output(f"{root}/large") as sink:
            sink.write(DATA)
        begun = [asked for asked in between.asked if self.is_put(asked) or asked.path.endswith("?uploads")]
        assert len(begun) == 2
        for asked in begun:
            assert asked.headers["x-amz-server-side-encryption"] == "AES256"
            assert asked.headers["x-amz-storage-class"] == "STANDARD_IA"
            assert asked.headers["x-amz-acl"] == "private"

    def test_checksums_are_sent_when_they_are_asked_for(self, between: Between, root: str) -> None:
        system = self.made({**self.properties(between), "s3.checksum-enabled": "true"})
        with system.open_output(f"{root}/large") as sink:
            sink.write(DATA)
        parts = [asked for asked in between.asked if "partNumber=" in asked.path]
        assert parts
        assert all("x-amz-checksum-crc32" in asked.headers for asked in parts)
        assert system.open_input(f"{root}/large").read() == DATA

    # -- stores that do not keep their word

    def test_the_examination_finds_a_store_that_ignores_the_condition_and_says_how_to_declare_it(
        self, between: Between, root: str
    ) -> None:
        between.behave = lambda asked, forward: forward(self.without_condition(asked))
        given = {"type": "directory", "warehouse": root, "commit": "create", **self.reached(between.url)}
        found = {finding.check: finding for finding in examine("test", **given)}
        assert found["atomic create"].result is Result.FAILED
        assert "s3.conditional-put=false" in found["atomic create"].advice

    def test_under_a_lock_a_store_that_ignores_the_condition_is_safe(
        self, between: Between, root: str, lock_properties: dict[str, str]
    ) -> None:
        """Declared as it is, nothing rests on its condition: the version's item decides."""
        between.behave = lambda asked, forward: forward(self.without_condition(asked))
        given = {**self.reached(between.url), "s3.conditional-put": "false", **lock_properties}
        catalog = load_catalog("test", type="directory", warehouse=root, commit="dynamodb-lock", **given)
        catalog.create_namespace("db")
        rows = pa.table({"n": [1]})
        one = catalog.create_table("db.t", rows.schema)
        other = catalog.load_table("db.t")
        one.append(rows)
        other.append(rows)
        assert catalog.load_table("db.t").scan().count() == 2
        assert not any("if-none-match" in asked.headers for asked in between.asked)
