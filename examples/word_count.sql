-- Counts words of the topic `lines`, for ever; the counts are a changelog in the compacted topic `word_counts`.

CREATE STREAM lines FROM TOPIC 'lines';

CREATE VIEW words AS
  SELECT explode(split(lower(cast(value AS string)), r'\W+')) AS word FROM lines;

INSERT INTO TOPIC 'word_counts' WITH (key = 'word', mode = 'update')
  SELECT word, cast(count(*) AS string) AS value FROM words WHERE word <> '' GROUP BY word;
