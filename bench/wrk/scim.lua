-- Sends the requests of a file one after another, `METHOD DIRECTORY TOKEN PATH BODY` each, PAUSE milliseconds between two of a connection: URL -- FILE PAUSE
local requests, at, pause = {}, 0, 0

function init(args)
  wrk.headers["Content-Type"] = "application/scim+json"
  for line in io.lines(args[1]) do
    local method, directory, token, path, body = line:match("^(%S+) (%S+) (%S+) (%S+) ?(.*)$")
    wrk.headers["Authorization"] = "Bearer " .. token
    requests[#requests + 1] = wrk.format(method, "/scim/v2/" .. directory .. path, nil, body ~= "" and body or nil)
  end
  pause = tonumber(args[2] or "0")
end

function delay()
  return pause
end

function request()
  at = at % #requests + 1
  return requests[at]
end
