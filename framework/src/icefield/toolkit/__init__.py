"""Helpers for plugin authors: base classes of strategies and file systems, and common parts of file formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from icefield.base.concurrency import LruCache, lazy, map_ahead, read_ahead, reset_after_fork
    from icefield.base.deprecation import deprecated, deprecation
    from icefield.base.limits import MAX_LOCATION_LENGTH, MAX_NAME_LENGTH, MAX_NAMESPACE_VALUE_LENGTH
    from icefield.base.notebooks import html_of, short_repr
    from icefield.base.progress import PROGRESS
    from icefield.base.secrets import (
        HIDDEN,
        credentials_in,
        holds_credential,
        scrub,
        without_credentials,
        without_userinfo,
    )
    from icefield.base.spelling import was_meant
    from icefield.base.structs import decodable
    from icefield.metadata.file_names import file_system_metadata_name, temporary_metadata_name, version_of
    from icefield.metadata.metrics import Metrics, MetricsCollector
    from icefield.metadata.property_checks import callers_level
    from icefield.partitioning.transforms import parse_transform
    from icefield.schema import schema_from_arrow, schema_from_json, schema_to_arrow, schema_to_json
    from icefield.toolkit.answers import LimitedStream, answer_limit, located, refusal_in, unquoted_etag
    from icefield.toolkit.arrow_forms import as_form, conform
    from icefield.toolkit.authority import (
        Endpoint,
        Host,
        LocationParts,
        authorities_named,
        credentials_refused,
        endpoint_of,
        split_host,
        split_location,
    )
    from icefield.toolkit.batches import POSITION, all_skipped, bare_batch, bounded, row_range, with_positions
    from icefield.toolkit.blocks import Block, BlockReader, starts_inside, virtual_blocks
    from icefield.toolkit.damage import reporting_damage
    from icefield.toolkit.filters import parts_that_may_match, translate_filter
    from icefield.toolkit.from_catalogs import checked_names, checked_pointer, checked_properties
    from icefield.toolkit.fsspec_file_system import FsspecFileSystem
    from icefield.toolkit.input_files import ArrowInput, BytesInput, as_input_file
    from icefield.toolkit.json_forms import filter_to_json, metrics_from_json, metrics_to_json
    from icefield.toolkit.log_redaction import without_debug_log
    from icefield.toolkit.metastore_strategy import MetastoreStrategy, OutcomeUnknown
    from icefield.toolkit.metastore_views import MetastoreViews
    from icefield.toolkit.multipart_output import PartedOutput
    from icefield.toolkit.options import is_true, whole_number
    from icefield.toolkit.publishing import delete_quietly, publish_by_create, publish_by_rename, read_whole
    from icefield.toolkit.ranged_input import FetchedRange, RangedInput
    from icefield.toolkit.retries import Backoff, RetryLimits, persist, together
    from icefield.toolkit.rows import Conversions, from_rows, to_rows
    from icefield.toolkit.shared_clients import SharedClients, close_with
    from icefield.toolkit.table_folders import folder_end
    from icefield.toolkit.versioned_strategy import Top, VersionedStrategy, is_tombstone, pointer_version
    from icefield.types.arrow.maps import last_of_each_key
    from icefield.types.arrow.nested import (
        list_parts,
        retype,
        struct_array,
        times_as_numbers,
        validate_full,
        validity_buffer,
    )
    from icefield.types.arrow.prune import prune_array, prune_batch
    from icefield.types.arrow.types import (
        DOC_KEY,
        FIELD_ID_KEY,
        TYPE_KEY,
        VARIANT_ARROW,
        child_fields,
        field_id,
        from_arrow_type,
        to_arrow_field,
        to_arrow_type,
        with_dictionaries,
        with_field_id,
    )
    from icefield.types.values import decimal_from_unscaled, from_arrow_scalar
    from icefield.types.values import from_bytes as value_from_bytes
    from icefield.types.values import to_json as value_to_json
    from icefield.types.values.distinct import distinct
    from icefield.types.values.variant import variant_names, variant_to_python

__getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DOC_KEY",
    "FIELD_ID_KEY",
    "HIDDEN",
    "MAX_LOCATION_LENGTH",
    "MAX_NAMESPACE_VALUE_LENGTH",
    "MAX_NAME_LENGTH",
    "POSITION",
    "PROGRESS",
    "TYPE_KEY",
    "VARIANT_ARROW",
    "ArrowInput",
    "Backoff",
    "Block",
    "BlockReader",
    "BytesInput",
    "Conversions",
    "Endpoint",
    "FetchedRange",
    "FsspecFileSystem",
    "Host",
    "LimitedStream",
    "LocationParts",
    "LruCache",
    "MetastoreStrategy",
    "MetastoreViews",
    "Metrics",
    "MetricsCollector",
    "OutcomeUnknown",
    "PartedOutput",
    "RangedInput",
    "RetryLimits",
    "SharedClients",
    "Top",
    "VersionedStrategy",
    "all_skipped",
    "answer_limit",
    "as_form",
    "as_input_file",
    "authorities_named",
    "bare_batch",
    "bounded",
    "callers_level",
    "checked_names",
    "checked_pointer",
    "checked_properties",
    "child_fields",
    "close_with",
    "conform",
    "credentials_in",
    "credentials_refused",
    "decimal_from_unscaled",
    "decodable",
    "delete_quietly",
    "deprecated",
    "deprecation",
    "distinct",
    "endpoint_of",
    "field_id",
    "file_system_metadata_name",
    "filter_to_json",
    "folder_end",
    "from_arrow_scalar",
    "from_arrow_type",
    "from_rows",
    "holds_credential",
    "html_of",
    "is_tombstone",
    "is_true",
    "last_of_each_key",
    "lazy",
    "list_parts",
    "located",
    "map_ahead",
    "metrics_from_json",
    "metrics_to_json",
    "parse_transform",
    "parts_that_may_match",
    "persist",
    "pointer_version",
    "prune_array",
    "prune_batch",
    "publish_by_create",
    "publish_by_rename",
    "read_ahead",
    "read_whole",
    "refusal_in",
    "reporting_damage",
    "reset_after_fork",
    "retype",
    "row_range",
    "schema_from_arrow",
    "schema_from_json",
    "schema_to_arrow",
    "schema_to_json",
    "scrub",
    "short_repr",
    "split_host",
    "split_location",
    "starts_inside",
    "struct_array",
    "temporary_metadata_name",
    "times_as_numbers",
    "to_arrow_field",
    "to_arrow_type",
    "to_rows",
    "together",
    "translate_filter",
    "unquoted_etag",
    "validate_full",
    "validity_buffer",
    "value_from_bytes",
    "value_to_json",
    "variant_names",
    "variant_to_python",
    "version_of",
    "virtual_blocks",
    "was_meant",
    "whole_number",
    "with_dictionaries",
    "with_field_id",
    "with_positions",
    "without_credentials",
    "without_debug_log",
    "without_userinfo",
]
