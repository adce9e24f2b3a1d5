"""The awaiting runners, from which the blocking ones are generated."""
