"""The Python clients against a bootstrap server."""

import kafka_python_cases
import librdkafka_cases
from suite import Suite


def main():
    suite = Suite()
    librdkafka_cases.add_to(suite)
    kafka_python_cases.add_to(suite)
    suite.main()


if __name__ == "__main__":
    main()
