"""The event loop's kit: answers that are ready later, work in slices, worker threads, clocks, stalls."""
