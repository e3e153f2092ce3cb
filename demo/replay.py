"""The demo on a node that runs: its topics, module and processors, then both feeds side by side."""

import threading

import datasets
import deployments
import feeding
from door import Door, Problem, Unreachable

# The whole file of flights in ten minutes, that of prices as well; then the next round.
ROWS_PER_SECOND = {"flights": 33, "stocks": 1}


def run(url, stop, say, fast=False, rounds=None):
    """Until `stop` (an Event) is set or the rounds are over. Says whether all went well."""
    door = Door(url)
    data = [datasets.Flights(), datasets.Stocks()]
    try:
        deployments.make_all(door, say)
    except (Problem, Unreachable, OSError) as error:
        say(f"the demo cannot be set up: {error}")
        return False
    finally:
        door.close()
    failed = []

    def feed(one):
        rate = feeding.FULL_SPEED if fast else ROWS_PER_SECOND[one.name]
        own_door = Door(url)
        try:
            feeding.Feed(own_door, one, rate, rounds).run(stop, say)
        except Problem as problem:
            failed.append(one.name)
            say(f"{one.name}: the feed has stopped: {problem}")
        finally:
            own_door.close()

    threads = [threading.Thread(target=feed, args=(one,), name=one.name) for one in data]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return not failed
