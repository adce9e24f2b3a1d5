"""fdstore in programs that other people wrote: each module stands alone and needs its own extra."""
