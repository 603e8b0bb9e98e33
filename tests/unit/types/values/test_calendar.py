import re
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from icefield.errors import InvalidArgument
from icefield.types.values.calendar import (
    date_from_days,
    days_from_date,
    format_date,
    format_time,
    format_timestamp,
    parse_date,
    parse_time,
    parse_timestamp,
)

EPOCH = date(1970, 1, 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.spec("TYP-08", "TYP-30")
@pytest.mark.parametrize(
    ("text", "days"),
    [("0001-01-01", -719162), ("1969-12-31", -1), ("1970-01-01", 0), ("9999-12-31", 2932896), ("2000-02-29", 11016)],
)
def test_days_count_from_1970_both_ways(text, days):
    assert parse_date(text) == days
    assert format_date(days) == text


@given(st.dates())
def test_days_agree_with_pythons_calendar(day):
    days = (day - EPOCH).days
    assert days_from_date(day.year, day.month, day.day) == days
    assert date_from_days(days) == (day.year, day.month, day.day)
    assert parse_date(day.isoformat()) == days


@given(INT32)
def test_days_of_any_year_survive_their_string(days):
    assert parse_date(format_date(days)) == days


@given(INT32)
def test_the_calendar_repeats_every_400_years(days):
    year, month, day = date_from_days(days)
    assert date_from_days(days + 146_097) == (year + 400, month, day)


@pytest.mark.parametrize(
    "text",
    ["", "2017-11", "2017-02-29", "2017-13-01", "2017-1-1", "17-01-01", "2017-11-16T00:00:00", "٢٠١٧-11-16",
     "2017-11-16 ", "+5881580-07-12", "-5877641-06-22", "x" * 1000, "2017-11-16\n"],
)  # fmt: skip
def test_what_is_no_day_is_refused(text):
    with pytest.raises(InvalidArgument) as caught:
        parse_date(text)
    assert len(str(caught.value)) < 200


@pytest.mark.spec("TYP-09")
@given(st.integers(0, 86_399_999_999))
def test_times_of_day_survive_their_string(micros):
    text = format_time(micros)
    assert parse_time(text) == micros
    assert time.fromisoformat(text) == (datetime.min + timedelta(microseconds=micros)).time()


@pytest.mark.spec("TYP-09")
@pytest.mark.parametrize("text", ["24:00:00", "23:60:00", "23:59:60", "1:00:00", "12:00:00.", "12:00:00.1234567", "12"])
def test_what_is_no_time_of_day_is_refused(text):
    with pytest.raises(InvalidArgument):
        parse_time(text)


@pytest.mark.spec("TYP-10", "TYP-11")
@given(INT64, st.booleans(), st.sampled_from([6, 9]))
def test_timestamps_survive_their_string(value, zone, digits):
    text = format_timestamp(value, zone=zone, digits=digits)
    assert parse_timestamp(text, zone=zone, digits=digits) == value
    assert parse_timestamp(text, zone=zone, digits=digits, lenient=True) == value
    assert text.endswith("+00:00") is zone


@pytest.mark.spec("TYP-11", "TYP-30")
@given(st.datetimes(timezones=st.timezones()))
def test_offsets_agree_with_pythons(moment):
    text = moment.isoformat()
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    if not re.search(r"\.\d+$", text.rpartition("+")[2]):  # offsets with fractions of a second are not ISO's
        assert parse_timestamp(text, zone=True, lenient=True) == expected


@pytest.mark.spec("TYP-11")
def test_one_instant_in_two_zones_is_one_value():
    pst = parse_timestamp("2017-11-16T17:10:34-08:00", zone=True, lenient=True)
    assert pst == parse_timestamp("2017-11-17T01:10:34Z", zone=True, lenient=True)
    assert format_timestamp(pst, zone=True) == "2017-11-17T01:10:34.000000+00:00"


@pytest.mark.spec("TYP-30")
@pytest.mark.parametrize("text", ["2024-03-31T02:30:00", "2024-03-10T02:30:00", "2024-10-27T02:30:00"])
def test_daylight_saving_plays_no_part(text, monkeypatch):
    for zone in ("Europe/Berlin", "America/Los_Angeles"):
        monkeypatch.setenv("TZ", zone)
        value = parse_timestamp(text, zone=False)
        assert value % 86_400_000_000 == 9_000_000_000
        assert format_timestamp(value, zone=False) == f"{text}.000000"


@pytest.mark.parametrize(
    "text",
    ["2017-11-16T24:00:00", "2017-02-30T00:00:00", "2017-11-16", "2017-11-16 10:00:00", "2017-11-16T10:00:00Z",
     "2017-11-16T10:00:00.1234567", "+999999999-01-01T00:00:00", "2017-11-16T", "now"],
)  # fmt: skip
def test_what_is_no_timestamp_is_refused(text):
    with pytest.raises(InvalidArgument):
        parse_timestamp(text, zone=False)


@pytest.mark.parametrize("text", ["2017-11-16T10:00:00+25:00", "2017-11-16T10:00:00+01:99", "2017-11-16T10:00:00"])
def test_a_wrong_or_missing_offset_is_refused_even_leniently(text):
    with pytest.raises(InvalidArgument, match="offset"):
        parse_timestamp(text, zone=True, lenient=True)


def test_lenient_string_may_be_a_day_or_have_a_blank():
    assert parse_timestamp("1970-01-02", zone=True, lenient=True) == 86_400_000_000
    assert parse_timestamp("1970-01-02 00:00 +01", zone=True, lenient=True) == 82_800_000_000
    assert parse_timestamp("1970-01-01 00:00:00.000000001", zone=False, digits=9, lenient=True) == 1


@pytest.mark.spec("TYP-22")
@pytest.mark.parametrize(
    ("text", "sign"), [("1677-09-21T00:12:43.145224191", -1), ("2262-04-11T23:47:16.854775808", 1)]
)
def test_nanoseconds_end_in_1677_and_2262(text, sign):
    with pytest.raises(InvalidArgument) as caught:
        parse_timestamp(text, zone=False, digits=9)
    assert caught.value.out_of_range == sign
    assert parse_timestamp("1677-09-21T00:12:43.145224192", zone=False, digits=9) == -(2**63)
    assert parse_timestamp("2262-04-11T23:47:16.854775807", zone=False, digits=9) == 2**63 - 1


@pytest.mark.parametrize("offset", ["+24:00", "-00:60", "+00:00:60"])
def test_an_offset_is_less_than_a_day_in_minutes_and_seconds_below_60(offset):
    with pytest.raises(InvalidArgument, match="offset out of range"):
        parse_timestamp(f"2024-01-01T00:00:00{offset}", zone=True, lenient=True)
    found = parse_timestamp("2024-01-02T00:00:00+23:59:59", zone=True, lenient=True)
    assert found == parse_timestamp("2024-01-01T00:00:01+00:00", zone=True)
