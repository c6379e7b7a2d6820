"""The event loop's kit: answers that come later, work in slices, worker threads, clocks, stalls."""
