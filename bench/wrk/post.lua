-- Posts the bodies of a file to the paths before them, one after another, PAUSE milliseconds between two of a connection: URL -- KEY FILE PAUSE
local requests, at, pause = {}, 0, 0

function init(args)
  wrk.headers["Authorization"] = "Bearer " .. args[1]
  wrk.headers["Content-Type"] = "application/json"
  for line in io.lines(args[2]) do
    local path, body = line:match("^(%S+) (.+)$")
    requests[#requests + 1] = wrk.format("POST", path, nil, body)
  end
  pause = tonumber(args[3] or "0")
end

function delay()
  return pause
end

function request()
  at = at % #requests + 1
  return requests[at]
end
