-- Sends the requests of a file one after another: `PATH BODY`, which is a POST with KEY, or `METHOD TOKEN PATH BODY`, where BODY may be absent. PACE: milliseconds between two
-- of a connection, or, as `50/s`, so many requests a second of all connections together: URL -- KEY FILE PACE
local ffi = require("ffi")
ffi.cdef("typedef struct { long seconds; long nanoseconds; } moment; int clock_gettime(int clock, moment *now);")
local MONOTONIC = 1

local requests, at, pause, between, due, now = {}, 0, 0, nil, nil, ffi.new("moment")

local function milliseconds()
  ffi.C.clock_gettime(MONOTONIC, now)
  return tonumber(now.seconds) * 1000 + tonumber(now.nanoseconds) / 1000000
end

local function requestOf(line, key)
  local method, token, path, body = line:match("^(%u+) (%S+) (%S+) ?(.*)$")
  if method == nil then
    method, token = "POST", key
    path, body = line:match("^(%S+) (.+)$")
  end
  wrk.headers["Authorization"] = "Bearer " .. token
  return wrk.format(method, path, nil, body ~= "" and body or nil)
end

-- What came late does not put off what follows.
local function untilNext()
  if between == nil then return pause end
  due = due and due + between or milliseconds()
  return math.max(0, math.floor(due - milliseconds()))
end

function init(args)
  wrk.headers["Content-Type"] = "application/json"
  for line in io.lines(args[2]) do requests[#requests + 1] = requestOf(line, args[1]) end
  local rate = (args[3] or ""):match("^(%d+)/s$")
  if rate then between = 1000 / tonumber(rate) else pause = tonumber(args[3] or "0") end
  -- Where there is a delay, even of nothing, wrk goes round its event loop twice for each request.
  if between or pause > 0 then delay = untilNext end
end

function request()
  at = at % #requests + 1
  return requests[at]
end
