"""What decides whether addresses are as the prompt says."""

import unittest

from slugs.address import slug, unique
from slugs.words import words


class Slugs(unittest.TestCase):
    """Slugs of titles."""

    def test_lower_case(self):
        self.assertEqual(slug("Big Sky"), "big-sky")

    def test_cut_at_a_word(self):
        self.assertEqual(slug("alpha beta gamma", 12), "alpha-beta")

    def test_third_of_a_name(self):
        self.assertEqual(unique("sky", {"sky", "sky-2"}), "sky-3")

    def test_signs(self):
        self.assertEqual(words("a-b: c"), ["a", "b", "c"])

    def test_free_name(self):
        found = unique("sky", set())
        assert found == "sky"
        self.assertTrue(found.isalpha())
