"""Two real data sets as streams without an end, and where npm has put their files.

`flights`: 20,000 departures in the United States of early 2001, keyed by origin. `stocks`: monthly prices of five
symbols, keyed by symbol. Both come from vega-datasets.

A data set is replayed in rounds. Event time must not go back from one round to the next, or all of the second would be
late; so each round is moved behind the one before by the whole span of the data, and its dates are written anew.
Within a round rows go out by event time. For the flights that is the order of the file; the file of the prices has one
symbol after the other, and in that order nearly every row of the second symbol of a partition would be late.
"""

import csv
import datetime
import json
import pathlib
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parent
FILES = FOLDER / "node_modules" / "vega-datasets" / "data"
STAMP = FOLDER / "node_modules" / ".package-lock.json"
INSTALL_SECONDS_MAX = 300

MINUTE = "%Y/%m/%d %H:%M"
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


class NoData(Exception):
    """The files are not there and cannot be had."""


def install():
    """Lets npm fetch the files, unless they are there."""
    if (FILES / "flights-20k.json").exists() and STAMP.stat().st_mtime >= (FOLDER / "package-lock.json").stat().st_mtime:
        return
    command = ["npm", "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        ended = subprocess.run(
            command, cwd=FOLDER, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=INSTALL_SECONDS_MAX
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoData(f"npm did not run: {error}") from None
    if ended.returncode != 0:
        lines = ended.stderr.strip().splitlines() or ["it said nothing"]
        raise NoData(f"npm could not install vega-datasets: {lines[-1] if len(lines) == 1 else ' '.join(lines[:2])}")
    if not (FILES / "flights-20k.json").exists():
        raise NoData(f"vega-datasets has no {FILES / 'flights-20k.json'}")


class Row:
    """One row of a file: its key, its event time in milliseconds since 1970, and the JSON of any round."""

    __slots__ = ("key", "time", "_fields", "_date")

    def __init__(self, key, date, fields):
        self.key = key
        self.time = epoch_millis(date)
        self._fields = fields
        self._date = date

    @property
    def fields(self):
        return self._fields

    @property
    def date(self):
        return self._date


def epoch_millis(date):
    return int(date.replace(tzinfo=datetime.timezone.utc).timestamp()) * 1000


class DataSet:
    """Rows in the order in which they go out; round 0 is the file as it is."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def value(self, index, number):
        """The JSON of a row in a round."""
        row = self.rows[index]
        fields = row.fields if number == 0 else {**row.fields, "date": self.date_in_round(row, number)}
        return json.dumps(fields, separators=(",", ":"))


class Flights(DataSet):
    name = "flights"

    def __init__(self, path=FILES / "flights-20k.json"):
        found = json.loads(pathlib.Path(path).read_text())
        rows = [Row(each["origin"], datetime.datetime.strptime(each["date"], MINUTE), each) for each in found]
        super().__init__(sorted(rows, key=lambda row: row.time))
        days = (self.rows[-1].date.date() - self.rows[0].date.date()).days + 1
        self._span = datetime.timedelta(days=days)

    def date_in_round(self, row, number):
        return (row.date + number * self._span).strftime(MINUTE)


class Stocks(DataSet):
    name = "stocks"

    def __init__(self, path=FILES / "stocks.csv", in_order=True):
        with open(path, newline="") as file:
            rows = [
                Row(
                    each["symbol"],
                    datetime.datetime.strptime(each["date"], "%b %d %Y"),
                    {"symbol": each["symbol"], "date": each["date"], "price": float(each["price"])},
                )
                for each in csv.DictReader(file)
            ]
        super().__init__(sorted(rows, key=lambda row: row.time) if in_order else rows)
        dates = [row.date for row in rows]
        first, last = min(dates), max(dates)
        self._span_months = (last.year - first.year) * 12 + last.month - first.month + 1

    def date_in_round(self, row, number):
        months = row.date.year * 12 + row.date.month - 1 + number * self._span_months
        return f"{MONTHS[months % 12]} {row.date.day} {months // 12}"
