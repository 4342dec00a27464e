-- Asks for the paths of a file, one after another: URL -- KEY FILE
local requests, at = {}, 0

function init(args)
  wrk.headers["Authorization"] = "Bearer " .. args[1]
  for path in io.lines(args[2]) do requests[#requests + 1] = wrk.format("GET", path) end
end

function request()
  at = at % #requests + 1
  return requests[at]
end
