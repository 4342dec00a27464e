-- Refreshes the sessions of a file of tokens in turn, each with the token of its last answer, and adds every token that it is given to NEXT: URL -- KEY CLIENT FILE NEXT
local tokens, place, at, before, given = {}, {}, 0, "", nil

local function session(token)
  return token:match("^[^.]+")
end

function init(args)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
  before = '{"grant_type":"refresh_token","client_secret":"' .. args[1] .. '","client_id":"' .. args[2] .. '","refresh_token":"'
  for token in io.lines(args[3]) do
    tokens[#tokens + 1] = token
    place[session(token)] = #tokens
  end
  given = io.open(args[4], "w")
  given:setvbuf("line")
end

function request()
  at = at % #tokens + 1
  return wrk.format(nil, nil, nil, before .. tokens[at] .. '"}')
end

function response(status, headers, body)
  local token = body:match('"refresh_token":"([^"]+)"')
  if token == nil then return end
  tokens[place[session(token)]] = token
  given:write(token, "\n")
end
