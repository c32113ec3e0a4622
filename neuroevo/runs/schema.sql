-- The tables of run.db. Numbers of generations and places of members count from 0.
-- A checksum is the CRC-32 of the row's other values, unless stated otherwise; see checksum() in values.py.

PRAGMA application_id = 0x6e65766f;
PRAGMA user_version = 2;

-- The run itself, in a single row.
CREATE TABLE run (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  token TEXT NOT NULL,               -- drawn when the run began, so that no two runs have the same
  config TEXT NOT NULL,              -- TOML, with every default filled in
  origin TEXT NOT NULL,              -- JSON: what results depend on
  info TEXT NOT NULL,                -- JSON: command, versions, commit, machine
  reference INTEGER REFERENCES arrays, -- observations for virtual batch normalization
  checksum INTEGER NOT NULL
) STRICT;

-- Sessions, one for each process that has trained the run.
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  generation INTEGER NOT NULL,       -- the first one that it played
  process TEXT NOT NULL,             -- JSON: which one, on which machine
  info TEXT NOT NULL,                -- JSON, as of the run
  seconds REAL NOT NULL,             -- wall time of the run so far
  ended INTEGER NOT NULL             -- 0: it trains, or was killed
) STRICT;

-- Arrays of states and reference batches, little-endian in C order.
CREATE TABLE arrays (
  id INTEGER PRIMARY KEY,
  state INTEGER REFERENCES states ON DELETE CASCADE,
  dtype TEXT NOT NULL,               -- NumPy's, such as <f4
  shape TEXT NOT NULL,               -- JSON
  data BLOB NOT NULL,
  checksum INTEGER NOT NULL
) STRICT;
CREATE INDEX arrays_state ON arrays (state);

-- Dense weight vectors, named by the SHA-256 sum of their float32 values.
CREATE TABLE centers (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  weights BLOB                       -- NULL once no state needs them
) STRICT;

-- Texts of networks that genomes use in place of a configured network.
CREATE TABLE networks (
  id INTEGER PRIMARY KEY,            -- from 1
  text TEXT NOT NULL UNIQUE
) STRICT;

-- The tree of genomes: each is a root, or a mutation of a parent. A mutation that changes the network is a graft.
CREATE TABLE genomes (
  id INTEGER PRIMARY KEY,
  parent INTEGER REFERENCES genomes, -- NULL: a root
  seed INTEGER,                      -- of the mutation, or of a root's initial weights; NULL: the root is a center
  scale REAL,                        -- of the mutation
  rank INTEGER,                      -- of the mutation's noise, if it is of low rank
  center INTEGER REFERENCES centers, -- of a root; of a mutation: what multiplies its noise
  network INTEGER NOT NULL,          -- of the configuration, from 0; or minus the id of an own network
  generation INTEGER,                -- where it was a member first
  place INTEGER,
  digest BLOB NOT NULL,              -- 16 bytes, of the root and all mutations
  checksum INTEGER NOT NULL          -- of digest, generation and place
) STRICT;

-- The values of metrics.csv. Test episodes may finish some generations later; tested is 0 until then.
CREATE TABLE generations (
  generation INTEGER PRIMARY KEY,
  tested INTEGER NOT NULL,
  elite INTEGER NOT NULL REFERENCES genomes,
  max_episode_steps INTEGER NOT NULL,
  fitness_mean REAL NOT NULL,
  fitness_median REAL NOT NULL,
  fitness_max REAL NOT NULL,
  fitness_min REAL NOT NULL,
  fitness_std REAL NOT NULL,
  validation_mean REAL,
  test_mean REAL,
  test_standard_error REAL,
  steps_population INTEGER NOT NULL,
  steps_validation INTEGER NOT NULL,
  steps_test INTEGER NOT NULL,
  steps_total INTEGER NOT NULL,
  frames_total INTEGER NOT NULL,
  failures_population INTEGER NOT NULL,
  failures_validation INTEGER NOT NULL,
  failures_test INTEGER NOT NULL,
  seconds_population REAL NOT NULL,
  seconds_validation REAL NOT NULL,
  seconds_test REAL NOT NULL,
  seconds_total REAL NOT NULL,
  steps_per_s REAL NOT NULL,
  idle_share REAL NOT NULL,
  metrics TEXT NOT NULL,             -- JSON: the algorithm's own
  normalizer_mean BLOB,              -- float64, of each number of an observation
  normalizer_std BLOB,
  checksum INTEGER NOT NULL
) STRICT;

-- Members of a generation.
CREATE TABLE members (
  generation INTEGER NOT NULL REFERENCES generations,
  place INTEGER NOT NULL,
  genome INTEGER REFERENCES genomes, -- NULL where logging.members_megabytes was used up
  fitness REAL NOT NULL,
  steps INTEGER NOT NULL,
  novelty REAL,
  PRIMARY KEY (generation, place)
) WITHOUT ROWID, STRICT;

-- Data of all members of a generation: the checksum of their rows, and their behaviors, compressed by zlib.
CREATE TABLE populations (
  generation INTEGER PRIMARY KEY REFERENCES generations,
  members INTEGER NOT NULL,
  fitness INTEGER NOT NULL,          -- CRC-32 of the members' fitness as float64
  dtype TEXT,                        -- |u1, <f4 or <f8
  behaviors BLOB,                    -- [members, numbers]
  checksum INTEGER NOT NULL
) STRICT;

-- Training states. `generation` finished generations precede the state.
CREATE TABLE states (
  generation INTEGER PRIMARY KEY,
  steps INTEGER NOT NULL,
  seconds REAL NOT NULL,
  value TEXT NOT NULL,               -- JSON; genomes and arrays in it are numbers of rows
  last_genome INTEGER NOT NULL,      -- rows of genomes after this one are later than the state
  checksum INTEGER NOT NULL
) STRICT;

-- Centers whose weights a state needs.
CREATE TABLE state_centers (
  state INTEGER NOT NULL REFERENCES states ON DELETE CASCADE,
  center INTEGER NOT NULL REFERENCES centers,
  PRIMARY KEY (state, center)
) WITHOUT ROWID, STRICT;

-- Outcomes of finished episodes that are not yet part of a state.
CREATE TABLE episodes (
  digest BLOB PRIMARY KEY,           -- 16 bytes, of what the outcome depends on
  return REAL NOT NULL,
  steps INTEGER NOT NULL,
  retries INTEGER,
  failure TEXT NOT NULL,
  sums BLOB NOT NULL,                -- of observations, float64
  dtype TEXT NOT NULL,               -- of the behavior
  behavior BLOB NOT NULL,
  checksum INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
