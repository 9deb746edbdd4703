"""What can be seen of the words of a title."""

import unittest

from slugs.words import words


class Words(unittest.TestCase):
    """Titles as people write them."""

    def test_signs_are_left_out(self):
        self.assertEqual(words("one, two!"), ["one", "two"])

    def test_lower_case(self):
        self.assertEqual(words("One"), ["one"])
