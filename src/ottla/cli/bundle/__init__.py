"""`ottla support-bundle`: what somebody who helps needs to see, in one bounded archive, without secrets."""
