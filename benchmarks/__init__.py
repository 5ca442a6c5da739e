"""Measurements of latticework beside other rule learners; never imported by the library."""
