"""How requests are told in metrics where the name of the API alone does not say it, as in Kafka."""

FETCH = "Fetch"
FETCH_CONSUMER = "FetchConsumer"
FETCH_FOLLOWER = "FetchFollower"
PARTS_OF_FETCH = (FETCH_CONSUMER, FETCH_FOLLOWER)  # told beside `Fetch`, which has them all
NO_ERROR = "NONE"
