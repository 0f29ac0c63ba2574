"""Order by time: ids, clocks with uncertainty, commit wait and the window sorter. It decides and has no side effects."""
