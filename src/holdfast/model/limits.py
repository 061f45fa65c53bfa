"""Every bound in one place, each with its reason. Units are last in the name."""

from __future__ import annotations

# Names and requests
ID_PREFIX_MIN = 4  # letters of an id that name it without its `ses_`: a short name that is not there names nobody else
NAME_MAX = 64  # fits a table column and a file name with room to spare
REQUEST_BYTES_MAX = 16 << 20  # a whole environment and argument list (the kernel's own cap is 6 MB) as JSON
REQUESTS_BYTES_MAX = 64 << 20  # half-read requests of all connections together: four of the largest at once
REQUEST_SMALL_BYTES = 64 << 10  # nearly every request: the last quarter of those bytes is for such
REQUEST_S = 60.0  # from a request's first byte to its last: they come from memory, over a local socket
FRAME_BYTES_MAX = 1 << 20  # one keeper frame: 16 log records, and small enough to hold per channel
INPUT_BYTES_MAX = 64 << 10  # one INPUT frame: a large paste comes as several

# Terminal sizes: the kernel takes 16 bits, an emulator allocates the product
COLS_MAX = 1000
ROWS_MAX = 1000
SIZE_DEFAULT = (80, 24)

# Output log
SEGMENT_BYTES = 8 << 20  # pruning frees this much at a time
RETAIN_BYTES = 256 << 20  # the newest output kept per session: an hour-long chatty build
RECORD_BYTES_MAX = 64 << 10  # one checksum covers at most this much, so one flipped bit costs at most this much
COALESCE_US = 10_000  # output within 10 ms is one index record: finer than an eye or a replay can tell
SYNC_DELAY_S = 1.0  # fdatasync at most about once a second (design: output.durable)

# The home's disk
RESERVE_START_BYTES = 512 << 10  # a host's start: the ledger's index (32 KB) and log, what its zygote rehearses
RESERVE_BYTES = RESERVE_START_BYTES + (512 << 10)  # and 25 commits of the journal, of five pages each

# Keeper
READS_PER_WAKE = 16  # measured: 16 joined reads give 123 MB/s to five clients, one read 69
READ_BYTES = 65536  # the kernel hands out about 4 KB of a PTY at a time; pipes give up to 64 KB
QUEUED_INPUT_BYTES_MAX = 256 << 10  # typed but not yet taken by the program; past it a channel is not read
CHANNELS_MAX = 256  # attached clients of one session
HELLO_S = 15.0  # from connecting to HELLO, which the host sends with the connection: a starved machine's pause, no more
CHANNELS_FOR_PEOPLE = 32  # of these: an agent that opens all it can does not keep a person from looking
CLIENTS_REMEMBERED = 256  # clients whose last input sequence number is kept for retries
REQUESTS_REMEMBERED = 128  # of one operator that are not carried out twice: a client has one under way, and has many
OPERATORS_REMEMBERED = 32  # of whom they are remembered: hands on one session
REQUESTS_REMEMBERED_AFTER = 16  # of all, with the record of the end, which must fit into one block of a full disk
CANONICAL_LINE_MAX = 4095  # the kernel's line buffer: a longer line would be cut in silence
EPOCHS_RESERVED = 64  # grants per fsync of the epoch ceiling
STOP_GRACE_S = 10.0  # TERM to KILL, as docker stop
GRACE_S = 30.0  # a human whose line is lost keeps the controls so long: a network that hiccups, a laptop's lid
# Grants, logins and questions end by the time of day. While one is used, it is looked at this often: somebody may have
# set the clock, and what is over must not last for as long as that was.
CLOCK_LOOK_S = 60.0
LEASE_S = 120.0  # an agent keeps the controls so long without acting: it may think, it may also be dead
TAKEOVER_S = 12 * 3600.0  # a person who took over and is away keeps the controls so long: a night, and no weekend
TAKEOVER_S_MAX = 30 * 86400.0  # whoever wants longer has left
TAKE_ASK_S = 30.0  # a person whose controls another person asks for is waited for: to read it, and to finish a line
HOLDS_MAX = 64  # reasons to hold the controls at once: a few attached windows and a command
RANGE_PAUSE_S = 1.0  # typing with shorter pauses is one entry of the record
RANGE_S_MAX = 60.0  # and so is typing for this long at most, so that the record lags no further behind
RECORD_WINDOW_S = 10.0  # the same act of one operator, past a burst, is one entry for so long
RECORD_BURST = 32  # told one by one: more than hands do in that time, but for a window dragged by its corner
RECORD_WINDOWS_MAX = 64  # kinds times operators that are counted at once
SPOOL_BYTES_MAX = 4 << 20  # entries no host has fetched, about 20,000: a day of work without one; then input waits
SPOOL_SPARE_BYTES = 256 << 10  # beyond it, for what cannot be refused: a takeover, a detach, the end
SPOOL_ANSWER_BYTES = 256 << 10  # entries in one answer: a quarter of a frame
SPOOL_SLACK_BYTES = 64 << 10  # acknowledged entries left in the file before it is written anew
WHY_MAX = 1000  # characters of a reason or a note: a paragraph
WORD_MAX = 128  # characters of an id, a name, a transport in a channel's HELLO
LINGER_S = 2.0  # a finished keeper gives slow readers this long; then they read on from disk

# Doors of isolated sessions: what is inside may be hostile
DOOR_CONNECTIONS_MAX = 64  # at once; more wait in the socket's queue, and the host keeps its descriptors for others
DOOR_CHILDREN_MAX = 16  # live sessions started through one door

# Host
SESSIONS_MAX = 2000  # live sessions of one host
EXECS_KEPT = 200  # finished exec records kept per session
KEEPER_ANSWER_S = 5.0  # a keeper that does not answer for so long is reported, not waited for
EMULATORS_MAX = 64  # screens kept warm; the rest are rebuilt from their keyframe and log
EMULATOR_STRIDE_BYTES = 256 << 10  # background emulation runs in steps of this, so attach has little to catch up
EXEC_OUTPUT_BYTES = 1 << 20  # of an exec's output given as one value unless asked otherwise: head and tail are kept
INLINE_OUTPUT_BYTES = 64 << 10  # an exec's output up to this comes with its result, more is read by offset
PATTERN_MAX = 1000  # characters of a regular expression
# Instructions of a compiled expression times the bytes of one search. Where RE2 falls back to its NFA it takes 5 to
# 10 ns for each (measured): a search is over within a third of a second.
MATCH_STEPS_MAX = 32 << 20
MATCH_WINDOW_BYTES = 1 << 20  # searched at once by a small expression: each byte of a long log about once
MATCH_WINDOW_BYTES_MIN = 8 << 10  # by the largest, of 4,096 instructions: a screen, and a match of half of it
MATCH_SPAN_BYTES = 64 << 10  # a match spans at most this much, and at most half a window: windows overlap by it
MATCH_MEMORY_BYTES = 2 << 20  # of RE2 for one expression: compiling one that is refused takes some 10 ms, not 100
MATCHES_MAX = 16  # searches in line at once, each with its window in memory
MATCHES_EACH_MAX = 4  # of one operator: others wait a second for theirs, whatever this one searches for
PIDS_MAX = 8192  # processes of one session where a cgroup can hold it: a fork bomb ends here

# Kernels
CELL_OUTPUT_BYTES = 1 << 20  # of mime bundles kept of one cell: a few plots; what is larger belongs in a file
CELL_STREAM_CHARS = 128 << 10  # of its streams kept as outputs: the log has all of it, by offset
CELL_TRACEBACK_CHARS = 32 << 10  # a recursion's thousand frames say no more than its two ends
CELL_OUTPUTS_MAX = 1000  # outputs of one cell: a loop that displays is no longer read one by one
CELL_FILE_BYTES_MAX = 8 << 20  # all of that as JSON with every character escaped; half of what a reply holds
CELLS_WAITING_MAX = 64  # executions in line for one kernel: past it somebody is in a loop
KERNEL_START_S = 60.0  # a kernel loads its libraries from a cold disk; one that takes longer does not come
KERNEL_FIND_S = 30.0  # to read the kernelspecs, on a loaded machine
SOCKET_PATH_MAX = 107  # bytes of a unix socket's path, as the operating system has it

# Inbox
ASK_TEXT_MAX = 4000  # characters of a question: a screen full, because it is shown whole
ASK_OPTIONS_MAX = 20  # more is a form, not a question
ASK_ANSWER_MAX = 64 << 10  # characters of an answer: a pasted file, not a disk
ASKS_OPEN_MAX = 100  # open items of one operator: an agent that asks in a loop fills this, and no disk
ASKS_CLOSED_KEPT = 1000  # answered and gone items kept to look back on; the journal keeps who answered for ever
APPROVAL_TEXT_MAX = 64 << 10  # characters shown for approval: more is not read by anybody, and is refused instead
APPROVAL_TIMEOUT_S = 300.0  # a person at the desk; whoever is away says so in the rule
STANDING_BYTES_MAX = 512 << 10  # of a request that waits in the inbox: a start with a large environment
OUTCOME_KEPT_S = 3600.0  # an asker that comes back later than this after a yes means another run
INBOX_SAMPLE_S = 2.0  # design: about 2 s for the inbox alone
NOTIFY_TIMEOUT_S = 10.0  # a webhook or hook that takes longer is ended and tried again
NOTIFY_TRIES = 3
NOTIFY_PAUSE_S = 1.0  # before the second try; doubled before the third
NOTIFY_QUEUE_MAX = 64  # notifications on their way; past it they are dropped and the log says so

# Operators and grants
OPERATORS_MAX = 1000  # enrolled on one host, revoked ones included: a team and its agents, not a directory
GRANTS_MAX = 10_000  # ten for each operator; all are held in memory
GRANTS_HELD_MAX = 32  # in force for one operator: a channel names them all to its keeper, which takes twice as many
GRANT_GLOBS_MAX = 32  # session patterns of one grant: each is matched in every decision
GRANT_DEPTH_MAX = 8  # links from the host's root grant: person, lead, agent, helper, with room

# The HTTP port
TOKENS_MAX = 1000  # in force at once: as many as there are operators
TOKEN_TTL_S = 30 * 86400.0  # of a token without --ttl: long enough for a set-up, short enough to be looked at again
WEB_REQUESTS_MAX = 256  # connections and requests at once: clients of one person, with streams of their own
WEB_SESSIONS_MAX = 256  # MCP sessions of the handshake era at once
WEB_HEAD_S = 10.0  # for the head of a request: one packet, on a line that may be bad
WEB_BODY_BYTES_MAX = 4 << 20  # one request: a step's result or a file, not a disk
LINK_TTL_S = 600.0  # of a link that logs a browser in: to be opened now, or made again
LOGIN_TTL_S = 30 * 86400.0  # of a browser that is logged in: as long as a token
LOGINS_MAX = 1000  # browsers and links of one person in force at once: many devices, and a script in a loop
VIEWERS_MAX = 96  # terminals open in browsers at once, of one person half: channels to keepers, with a window of output
VIEW_UNACKED_BYTES = 1 << 20  # output that a browser has not shown yet; past it, it is waited for
VIEW_SKIP_BYTES = 1 << 20  # a browser further behind gets the screen as it is now instead of what it missed
VIEW_BACK_BYTES = 256 << 10  # of a program on pipes, which has no screen: where a view begins
VIEW_INPUTS_MAX = 32  # typed and not taken by the keeper yet: 2 MiB at most; past it typing is refused
VIEW_MESSAGE_BYTES_MAX = 128 << 10  # one message of a browser: 64 KiB of input as base64 in JSON
BEAT_S = 5.0  # between two signs of life to a browser, so that a stalled network is noticed within two
SILENT_S = 30.0  # a browser that says nothing for so long is gone: six beats unanswered
LIVE_LOOK_S = 1.0  # between two looks at what changed, while a browser shows it; what happened meanwhile comes together
LIVE_MAX = 96  # pages that follow everything at once, of one person half; with the terminals below WEB_REQUESTS_MAX

# Journal
JOURNAL_TEXT_MAX = 4096  # characters kept of a command or a sent text; an exec's file has the rest
REFUSAL_WINDOW_S = 10.0  # the same refusal again within this time is counted, not written again
REFUSALS_TRACKED_MAX = 100  # different refusals written within that time; past it they share one entry
TIMELINE_MAX = 1000  # entries in one answer; more is asked for from a number on

# Work
KEY_MAX = 512  # a step's key, a worker, an artifact's name: a long path fits, an essay does not
ITEMS_MAX = 100_000  # items a run declares up front: status lists them, and they are kept as one value
VALUE_BYTES_MAX = 8 << 20  # one result, message or parameter set: half a request of the host, base64 and frame fit
ARGS_SHOWN_BYTES = 16 << 10  # arguments kept to be read by a person who settles; more is known by its hash alone
REPLY_STATE_BYTES = 4 << 20  # a state that comes in one reply: as JSON it has room in it, also when escaped
PIECE_BYTES = 1 << 20  # an artifact is kept in pieces of this: bounded memory, and a request of the host holds one
ARTIFACT_BYTES_MAX = 1 << 30  # what a program can still hold and hash in one go; larger things belong elsewhere
RUN_LEASE_S = 30.0  # a dead worker is replaced after this; a garbage collection or a busy machine stays well below
RUN_LEASE_BEATS = 3  # renewals per lease: two may be lost on the way
BODY_WAIT_S = RUN_LEASE_S  # a run that is closed waits for a body under way: a dead worker would not be replaced sooner
RUN_LEASE_MAX_S = 7 * 86400.0  # longer is no lease but an abandoned run
# A person or an agent between two commands, while a step of theirs is open; each command renews it. As long as most
# things take that are done by hand, and no longer than somebody else waits: whoever began may go on after it as well,
# unless another came meanwhile.
LEASE_HELD_BY_HAND_S = 300.0
JOB_CRASHES_MAX = 3  # workers that die at one run before a person looks: once is an accident, three times is the job
JOBS_MAX = 100  # jobs of one worker: they are named in each look for work
PARKED_SHOWN_MAX = 100  # parked runs that an inbox names: the oldest; the next ones come as these are dealt with
WORKER_LOOK_S = 1.0  # an idle worker looks for a new run this often: one indexed query; leases are waited for exactly
SETTLE_S = 86400.0  # a step in doubt is to be settled within a day unless said otherwise
UPLOAD_S = 3600.0  # pieces of an artifact that was never finished may be collected after this
GROUP_MAX = 256  # transactions that share one commit: a burst's latency stays below a few milliseconds
RUNS_REMEMBERED_MAX = 1024  # whose rows a store keeps between two steps: more workers than one host serves
STEPS_REMEMBERED_MAX = 16  # open ones of a run: a run has one, or a few at once
AHEAD_MAX = 4  # requests kept behind the one under way: the protocol is one at a time, a little haste is borne
LANES_MAX = 64  # connections with a thread of their own in the host: workers in the middle of their work
LANE_IDLE_S = 10  # then it is given back: longer than the pause between two steps of a busy worker
WRITES_QUEUED_MAX = 10_000  # callers waiting for the writer; beyond it they are told to come back
STORE_WAIT_S = 60.0  # a database that restarts is waited for this long: a package upgrade takes half of it

# Checkpoints and memory
STATE_BYTES_MAX = 256 << 20  # one saved state: kept in memory twice while it is saved; larger values are artifacts
LINES_MAX = 256  # runs and threads whose last saved bytes are kept in memory, so that a save need not read them
LINES_BYTES_MAX = 256 << 20  # of those bytes; they are about as large again in memory
CHECKPOINT_ENTRIES = 200  # log entries after which a checkpoint is made from the log: a restore folds at most these
CHECKPOINT_BYTES = 1 << 20  # or bytes of entries: about a long conversation's worth
WINDOW_TOKENS = 32_000  # of a memory window unless asked otherwise: fits every current model with room to answer
WINDOW_MESSAGES_MAX = 1000  # kept in the cache per run; older ones are read from the store when a budget reaches them
CACHE_BYTES_MAX = 64 << 20  # of windows in the process; the least used goes first
SCRATCH_MAX = 1000  # scratch values of a run: they are part of its state

# The runner
PARALLEL_MAX = 64  # tasks of one runner at once: each is a session with an agent in it

# Files of attempts
SCOPE_FILES_MAX = 20_000  # of one scope: a large repository; their stat calls take about a second
SCOPE_FILE_BYTES_MAX = 64 << 20  # one file is read and hashed up to this; a larger one is known by size and time
SCOPE_BYTES_MAX = 1 << 30  # read for one snapshot, a few seconds of a disk; the rest is known by size and time
KEPT_FILE_BYTES_MAX = 256 << 10  # a text file's content is kept for the patch: source code, not data
KEPT_BYTES_MAX = 32 << 20  # of all of them, before compression
SNAPSHOT_BYTES_MAX = 128 << 20  # with an entry for each file of a scope, of a path's 4 KiB at most: before compression
PATCH_BYTES_MAX = 8 << 20  # of one attempt: what nobody reads is named instead
FOLDER_LOOKED_MAX = 20_000  # entries of a session's folder that are looked at for what changed: about a second
FOLDER_LOOK_S = 2.0  # and no longer than somebody waits for a tab to fill
FOLDER_TOLD_MAX = 200  # files told, the latest: what a person reads
GIT_ANSWER_S = 20.0  # git lists a large tree within this; else the folder is walked
GIT_ANSWER_BYTES_MAX = 128 << 20  # of one answer: a million paths, or a blob of twice the size that is kept as text
GIT_FILE_BYTES_MAX = 1 << 20  # a repository's configuration, or a file that names a folder: people write those

# Tasks
PHASES_MAX = 100  # of a project: a plan that people read
TITLE_MAX = 200  # characters of a task's title: a line
PROSE_MAX = 16 << 10  # characters of a goal, a constraint, a criterion: pages, not books
LIST_MAX = 200  # constraints, criteria, artifacts, patterns of one contract: each is read by whoever does it
SCOPE_STEPS_MAX = 200_000  # letters of two scopes compared before they count as shared: a fifth of a second
AFTER_MAX = 1000  # dependencies of one task: a last task that gathers a large phase
CHECKS_MAX = 64  # verification commands of one contract, and
CHECKS_BYTES_MAX = 96 << 10  # of them in all: they travel as one argument, and the kernel takes 128 KiB
CHECK_TIMEOUT_S = 600.0  # one verification command: a test suite; a longer one says so
CHECK_TIMEOUT_MAX_S = 86400.0  # a night and a day; beyond it nobody waits for the answer
CHECK_TAIL_BYTES = 4096  # of a verification's output kept with the attempt; the session's log has all of it
TASKS_LISTED_MAX = 10_000  # in one answer: about 3 MB; a following call goes on from there
ATTEMPTS_SHOWN_MAX = 100  # of one task in one answer, the latest
ATTEMPTS_MAX = 3  # before somebody is asked: enough for a flake and a second thought
STUCK_AFTER = 3  # attempts that fail in the same way: a fourth would, too
TASK_TIMEOUT_S = 3600.0  # a backend's work at one attempt unless said otherwise
POLICY_BYTES_MAX = 256 << 10  # one policy: rules that people write
BACKENDS_MAX = 200  # command lines by name, in one store

# Claims, briefs and reports
CLAIMS_MAX = 1000  # of one task or run, and of one look: each is a question to the kernel
CLAIM_BYTES_MAX = 64 << 10  # what is claimed, or the evidence of a look: last lines, not logs
CLAIM_FILE_BYTES_MAX = 1 << 30  # a file that is claimed is hashed at each look that finds it touched
PROJECT_FILE_BYTES_MAX = 1 << 20  # holdfast.toml and config.toml: tables that people write, not data
CLAIM_TIMEOUT_S = 60.0  # a command that a look runs, unless said otherwise
CLAIM_TAIL_BYTES = 4096  # read back from a session for its last lines
CLAIM_TAIL_LINES = 12  # of them: an exception with its message
BRIEF_TOKENS = 4000  # of a brief unless asked otherwise: a page or two, small beside any model's window
BRIEF_LISTED = 50  # of each kind of fact gathered for a brief: more is counted, and never fits anyway
BRIEF_SESSIONS = 20  # sessions of one brief that are asked how they are
BRIEF_TAIL_BYTES = 2048  # of a session's output that is shown: the last screen's end
REPORT_TASKS = 1000  # tasks and runs listed in one report; all are counted
REPORT_EVENTS = 20  # of one task in a report, the latest; hold task show has more
REPORT_LANES = 80  # rows of the timeline picture: what a page can show

# Sealed channel (docs/relay-protocol.md). Both ends count with these: they are frozen with the protocol's version 1
SEALED_GREETING_BYTES_MAX = 2048  # of any version: 49 now; with room for larger keys, so that its version can be read
# Plaintext of one record: a keystroke waits behind 3 ms of bulk at 10 MB/s. Measured on one core: 60 KiB seal a fifth
# faster, which a network hides, and 16 KiB a third slower.
SEALED_RECORD_BYTES = 32 << 10
SEALED_PAD_BYTES = (64, 128, 256, 512, 1024)  # a key, a line, a request: sizes that would tell what was typed
SEALED_REKEY_RECORDS = 1 << 16  # a stolen key opens no record from before; AES-GCM's own limit is past 2^24 records
SEALED_REKEY_BYTES = 64 << 20  # and no more than this; a rekey costs less than sealing one small record
SEALED_ID_BYTES_MAX = 64  # of a tenant, node, host or device id: three times what `ids.new` makes
SEALED_STREAMS_MAX = 128  # streams that one side has opened: connections of one machine's programs to one host
SEALED_WINDOW_BYTES = 512 << 10  # sent and not yet consumed, per stream: 5 MB/s at 100 ms; all streams: 64 MiB a side
SEALED_CREDIT_BYTES = SEALED_WINDOW_BYTES // 4  # consumed bytes that are worth a CREDIT frame: four in one window
SEALED_QUEUE_BYTES = 128 << 10  # written and not yet sealed, per stream: four records; more would only wait
SEALED_TURN_BYTES = 8 << 10  # of one stream in its turn: at least four streams share a record
SEALED_BULK_SHARE = 4  # bulk gets at least this part of a record while interactive streams flood
SEALED_PURPOSE_BYTES_MAX = 256  # what a stream is for, in its OPEN: a word and an id
SEALED_END_BYTES_MAX = 512  # code and message of an END: the one line that a person reads

# Relay node
RELAY_LINES_MAX = 4096  # connections of hosts and devices at one node: at 64 kB each a quarter of a GB
RELAY_SEEN_MAX = 10_000  # hosts whose last coming or going a node remembers: more than it can have lines
RELAY_DEVICE_CHANNELS_MAX = 32  # channels of one device: one for each host of a fleet
RELAY_HOST_CHANNELS_MAX = 1024  # channels of one host: a team's devices
RELAY_CONTESTED = 3  # lines of one host that replaced each other within
RELAY_CONTESTED_S = 60.0  # this time: two machines with one key, because a host on a bad network waits longer each time
RELAY_KEYS_MAX = 10_000  # devices or addresses that a quota counts at once; the least recently seen is forgotten
