import BusSupport
import Foundation
import Glibc
import TestSupport
import Testing

/// The phone of a group by the shell: accounts, texts and calls that a push tells of, with a server of the package.
@Suite(.serialized, .tags(.realtime), .onSteadyMachine) struct SharedPhoneCommandRealTimeTests {
    private let folder: Scratch
    private let server: ToolRun
    private let way: String
    private var group: String { folder.file("group") }

    init() throws {
        folder = try Scratch()
        let users = folder.file("users.json")
        try #"{"bob":{"password":"builder-7"},"alice":{}}"#.write(toFile: users, atomically: true, encoding: .utf8)
        server = try ToolRun([
            "sip", "server", "--domain", "example.test", "--local", "127.0.0.1:0", "--users", users, "--push-log",
            folder.file("pushes"), "--json",
        ])
        try #require(server.printed(#""event":"listening""#), "\(server.errors)")
        let addresses = try #require(try server.jsonLines().first?["addresses"] as? [String])
        way = "sip:" + (addresses.first?.split(separator: " ").last.map(String.init) ?? "") + ";lr"
    }

    private var password: String {
        get throws {
            let file = folder.file("password")
            try "builder-7\n".write(toFile: file, atomically: true, encoding: .utf8)
            chmod(file, 0o600)
            return file
        }
    }

    /// Adds Bob to the group.
    private func addAccount(_ more: String..., environment: [String: String] = [:]) throws {
        let add = try ToolRun(
            [
                "sip", "account", "add", "--group", group, "--account", "sip:bob@example.test", "--proxy", way,
                "--password-file", password, "--push-team", "ABCD", "--push-bundle", "org.example", "--push-voip-token",
                "c0ffee", "--push-remote-token", "beefed",
            ] + more,
            environment: environment
        )
        #expect(add.wait() == 0, "\(add.errors)")
        expectNoSecret(in: add)
    }

    private func expectNoSecret(in runs: ToolRun...) {
        for run in runs {
            for secret in ["builder-7", "c0ffee", "beefed"] {
                #expect(!run.output.contains(secret) && !run.errors.contains(secret))
            }
        }
    }

    private func alice(_ words: String...) throws -> ToolRun {
        try ToolRun(["sip"] + words + ["--account", "sip:alice@example.test", "--proxy", way, "--json"])
    }

    /// The main core of the group, which is registered.
    private func main(_ more: String...) throws -> ToolRun {
        let main = try ToolRun(["core", "main", "--group", group, "--local", "127.0.0.1:0", "--json"] + more)
        #expect(main.printed(#""event":"registered""#), "\(main.errors)")
        return main
    }

    /// The first call-id that the server has told of in an event.
    private func callID(_ event: String) throws -> String {
        #expect(server.printed(#""event":"\#(event)""#))
        let line = try #require(try server.jsonLines().last { $0["event"] as? String == event })
        return try #require(line["callID"] as? String)
    }

    private func end(_ runs: ToolRun...) {
        for run in runs + [server] {
            run.interrupt()
            #expect(run.wait() == 0, "\(run.errors)")
            expectNoSecret(in: run)
        }
    }

    @Test func `accounts are added, listed, changed and removed, and no secret is shown`() throws {
        try addAccount("--realm", "example.test")
        let list = try ToolRun.finished("sip", "account", "list", "--group", group, "--json")
        let account = try #require((try list.json()["accounts"] as? [[String: Any]])?.first)
        #expect(account["account"] as? String == "sip:bob@example.test" && account["password"] as? String == "set")
        #expect(account["push"] as? String == "set" && account["expires"] as? Int == 3600)
        let again = try ToolRun.finished("sip", "account", "add", "--group", group, "--account", "sip:bob@example.test")
        #expect(again.status == 1 && again.errors.contains("sip account set"))

        // A core that runs uses what is changed.
        let main = try main()
        let set = try ToolRun.finished(
            "sip",
            "account",
            "set",
            "--group",
            group,
            "--account",
            "sip:bob@example.test",
            "--expires",
            "600",
            "--json"
        )
        #expect(
            try set.status == 0 && set.json()["expires"] as? Int == 600 && set.json()["password"] as? String == "set"
        )
        #expect(server.printed(#""expires":600"#))
        let status = try ToolRun.finished("core", "status", "--group", group, "--json").json()
        let registration = try #require((status["accounts"] as? [[String: Any]])?.first)
        #expect(registration["state"] as? String == "ok" && registration["pushServed"] as? Bool == true)
        let remove = try ToolRun.finished(
            "sip",
            "account",
            "remove",
            "--group",
            group,
            "--account",
            "sip:bob@example.test"
        )
        #expect(remove.status == 0 && server.printed(#""expires":0"#))
        expectNoSecret(in: list, set, remove)
        let notify = try ToolRun.finished("core", "notify", "--group", group, "--call-id", "1")
        #expect(notify.status == 1 && notify.errors.contains("sip account add"))
        end(main)
    }

    @Test(.enabled(if: PrivateBus.isPossible, "dbus-daemon is not installed"))
    func `the desktop's keyring has the secrets of an account that says so, and is asked by who uses it`() throws {
        let bus = try PrivateBus()
        let keyring = try FakeSecretService(bus)
        let environment = bus.environment
        func account(_ words: String...) throws -> ToolRun {
            let run = try ToolRun(["sip", "account"] + words + ["--group", group, "--json"], environment: environment)
            run.wait()
            expectNoSecret(in: run)
            return run
        }
        func listed() throws -> [String: Any] {
            try #require((try account("list").json()["accounts"] as? [[String: Any]])?.first)
        }
        try addAccount("--secrets", "desktop", environment: environment)
        let kept = try #require(keyring.items.first).secret
        #expect(String(decoding: kept, as: UTF8.self).contains("builder-7"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(group)/secrets").isEmpty)
        #expect(try listed()["password"] as? String == "set" && listed()["secrets"] as? String == "desktop")
        // Who only looks at the list is not asked for a password, who registers is.
        keyring.lock(.refuses)
        #expect(try listed()["password"] as? String == "unreadable" && keyring.prompts.isEmpty)
        let refused = try ToolRun(
            ["core", "main", "--group", group, "--local", "127.0.0.1:0", "--json"],
            environment: environment
        )
        #expect(refused.printed(#""event":"unregistered""#) && refused.output.contains("keyring stays locked"))
        refused.interrupt()
        #expect(refused.wait() == 0)
        keyring.lock(.gives)
        let main = try ToolRun(
            ["core", "main", "--group", group, "--local", "127.0.0.1:0", "--json"],
            environment: environment
        )
        #expect(main.printed(#""event":"registered""#), "\(main.errors)")
        main.interrupt()
        #expect(main.wait() == 0)
        expectNoSecret(in: refused, main)
        let registered = try ToolRun.finished("sip", "register", "--group", group, "--once", environment: environment)
        #expect(registered.status == 0, "\(registered.errors)")

        // It moves, with all that is not said anew.
        let name = ["--account", "sip:bob@example.test"]
        #expect(try account("set", name[0], name[1], "--secrets", "files").status == 0)
        #expect(try keyring.items.isEmpty && listed()["password"] as? String == "set")
        #expect(try account("set", name[0], name[1], "--secrets", "desktop").status == 0)
        let again = try #require(keyring.items.first).secret
        #expect(String(decoding: again, as: UTF8.self).contains("builder-7"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(group)/secrets").isEmpty)
        #expect(try account("remove", name[0], name[1]).status == 0 && keyring.items.isEmpty)
        bus.end()
        let add = try account("add", name[0], name[1], "--secrets", "desktop", "--user", "bob")
        #expect(add.status == 1 && add.errors.contains("Start a desktop session"), "\(add.errors)")
        #expect(try account("list").output == #"{"accounts":[]}"# + "\n")
        end()
    }

    @Test func `a text wakes an executor, is shown once, and its sender hears of it; a reply comes back`() throws {
        try addAccount()
        let registered = try main("--transport", "udp")
        registered.interrupt()
        registered.wait()
        let sending = try alice("message", "sip:bob@example.test", "Lunch?", "--receipts", "delivered", "--wait", "20")
        let callID = try callID("kept")
        // The line of the server says that it is about a text.
        let notify = try ToolRun.finished(
            "sip",
            "push",
            "--group",
            group,
            "--payload",
            folder.file("pushes"),
            "--json"
        )
        let shown = try notify.json()
        #expect(shown["text"] as? String == "Lunch?" && shown["source"] as? String == "executor", "\(notify.errors)")
        #expect(shown["from"] as? String == "sip:alice@example.test" && shown["repeated"] as? Bool == false)
        #expect(sending.wait() == 0, "\(sending.errors)")
        #expect(sending.output.contains(#""kind":"delivered""#))
        let second = try ToolRun.finished(
            "core",
            "notify",
            "--group",
            group,
            "--call-id",
            callID,
            "--local",
            "127.0.0.1:0",
            "--json"
        )
        #expect(try second.json()["text"] is NSNull)

        let listening = try alice("message", "--listen", "--count", "1")
        #expect(listening.printed(#""event":"registered""#), "\(listening.errors)")
        let act = try ToolRun.finished(
            "core",
            "act",
            "--group",
            group,
            "--call-id",
            callID,
            "--reply",
            "At noon",
            "--local",
            "127.0.0.1:0",
            "--json"
        )
        #expect(act.status == 0, "\(act.errors)")
        #expect(listening.wait() == 0 && listening.output.contains(#""text":"At noon""#), "\(listening.errors)")
        end()
    }

    @Test func `a pushed call is shown by a screen, answered there, and goes on when that is killed`() throws {
        try addAccount()
        let main = try main("--calls")
        let screen = try ToolRun(["provider", "serve", "--group", group, "--json"])
        #expect(screen.printed(#""event":"snapshot","calls":[]"#), "\(screen.errors)")
        let calling = try alice("call", "sip:bob@example.test", "--seconds", "60")
        let payload = folder.file("push.json")
        try #"{"aps":{"call-id":"\#(callID("parked"))"}}"#.write(toFile: payload, atomically: true, encoding: .utf8)
        let push = try ToolRun.finished("sip", "push", "--group", group, "--payload", payload, "--json")
        let uuid = try #require(try push.json()["uuid"] as? String)
        #expect(screen.printed(#""event":"incoming","uuid":"\#(uuid)""#))
        let answer = try ToolRun.finished("provider", "act", "--group", group, "answer", uuid, "--json")
        #expect(try answer.json()["result"] as? String == "fulfilled", "\(answer.errors)")
        #expect(screen.printed(#""event":"audio","active":true"#))
        screen.killAtOnce()
        let status = try ToolRun.finished("provider", "status", "--group", group, "--json")
        let call = try #require((try status.json()["calls"] as? [[String: Any]])?.first)
        #expect(call["uuid"] as? String == uuid && call["connected"] as? Bool == true)
        let next = try ToolRun(["provider", "serve", "--group", group, "--json"])
        #expect(next.printed(#""event":"snapshot","calls":[{"uuid":"\#(uuid)""#))
        let ended = try ToolRun.finished("provider", "act", "--group", group, "end")
        #expect(ended.status == 0 && ended.output == "end: fulfilled\n")
        #expect(next.printed(#""active":false"#))
        let failed = try ToolRun.finished("provider", "act", "--group", group, "end", uuid)
        #expect(failed.status == 1 && failed.output == "end: unknownCall\n")
        #expect(calling.wait() == 0 && main.printed(#""outcome":"talked""#), "\(calling.errors)")
        end(next, main)
    }

    @Test func `a push of a call that finds no place is a fault, and is told as one`() throws {
        try addAccount()
        let main = try main("--calls")
        let payload = folder.file("push.json")
        // Sixteen may wait for their calls.
        let pushes = try (0...16).map { number in
            try #"{"call-id":"\#(number)"}"#.write(toFile: payload + "\(number)", atomically: true, encoding: .utf8)
            return try ToolRun(["sip", "push", "--group", group, "--payload", payload + "\(number)", "--json"])
        }
        let faults = pushes.filter { $0.wait() != 0 }
        #expect(faults.map(\.output) == [#"{"event":"fault","what":"unreported"}"# + "\n"])
        #expect(faults.first?.errors.contains("Too many wait") == true)
        end(main)
    }

    @Test func `a process without a screen takes a call, and a main that starts meanwhile attends it and follows`()
        throws
    {
        try addAccount()
        let registered = try main()
        registered.interrupt()
        registered.wait()
        let calling = try alice("call", "sip:bob@example.test", "--seconds", "60")
        let payload = folder.file("push.json")
        try #"{"call-id":"\#(callID("parked"))"}"#.write(toFile: payload, atomically: true, encoding: .utf8)
        let log = folder.file("calls.jsonl")
        let command = "exec \(ToolRun.path) core calls --group \(group) --local 127.0.0.1:0 --json >\(log)"
        let words = ["sip", "push", "--group", group, "--payload", payload, "--json", "--launch", command]
        let push = try ToolRun(words)
        #expect(push.wait() == 0, "\(push.errors)")
        let uuid = try #require(try push.json()["uuid"] as? String)
        let answer = try ToolRun.finished("provider", "act", "--group", group, "answer")
        #expect(answer.status == 0, "\(answer.output)\(answer.errors)")
        // It waits, and prints what a screen is told.
        let main = try ToolRun(["core", "main", "--group", group, "--local", "127.0.0.1:0", "--calls", "--json"])
        #expect(main.printed(#""event":"snapshot","calls":[{"uuid":"\#(uuid)""#), "\(main.errors)")
        let status = try ToolRun.finished("core", "status", "--group", group, "--json").json()
        #expect((status["owner"] as? [String: Any])?["role"] as? String == "call")
        let hold = try ToolRun.finished("provider", "act", "--group", group, "hold")
        #expect(hold.status == 0, "\(hold.output)\(hold.errors)")
        #expect(main.printed(#""action":"setHeld","result":"fulfilled""#))
        #expect(!main.output.contains(#""event":"running""#))
        #expect(try ToolRun.finished("provider", "act", "--group", group, "end").status == 0)
        #expect(main.printed(#""event":"registered""#), "\(main.errors)")
        #expect(calling.wait() == 0, "\(calling.errors)")
        let told = { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
        #expect(Polling.wait { told().contains(#""event":"stopped""#) } && told().contains(#""outcome":"talked""#))
        let after = try ToolRun.finished("core", "status", "--group", group, "--json").json()
        #expect(after["state"] as? String == "main" && after["calls"] as? Int == 1)
        end(main)
    }

    @Test func `a call whose process is killed as it rings is shown no more once the next is there`() throws {
        try addAccount()
        let words = ["core", "calls", "--group", group, "--local", "127.0.0.1:0", "--json"]
        let core = try ToolRun(words)
        #expect(core.printed(#""event":"running""#), "\(core.errors)")
        let screen = try ToolRun(["provider", "serve", "--group", group, "--json"])
        #expect(screen.printed(#""event":"snapshot","calls":[]"#), "\(screen.errors)")
        let payload = folder.file("push.json")
        try #"{"call-id":"1"}"#.write(toFile: payload, atomically: true, encoding: .utf8)
        let push = try ToolRun.finished("sip", "push", "--group", group, "--payload", payload, "--json")
        let uuid = try #require(try push.json()["uuid"] as? String)
        #expect(screen.printed(#""event":"incoming","uuid":"\#(uuid)""#))
        core.killAtOnce()
        #expect(screen.printed(#""event":"interrupted""#))
        let next = try ToolRun(words)
        #expect(next.printed(#""event":"running""#), "\(next.errors)")
        let isShown = { screen.output.components(separatedBy: #""event":"snapshot","calls":[]"#).count == 3 }
        #expect(screen.wait(until: isShown), "\(screen.output)")
        let second = try ToolRun(words)
        #expect(second.wait() == 1 && second.errors.contains("Give the push to that."), "\(second.errors)")
        end(screen, next)
    }

    @Test func `a push of a call starts what takes it, and one that is answered before its call is here is connected`()
        throws
    {
        try addAccount()
        let registered = try main()
        registered.interrupt()
        registered.wait()
        let calling = try alice("call", "sip:bob@example.test", "--seconds", "1")
        let payload = folder.file("push.json")
        try #"{"call-id":"\#(callID("parked"))"}"#.write(toFile: payload, atomically: true, encoding: .utf8)
        let log = folder.file("main.jsonl")
        let command =
            "exec \(ToolRun.path) core main --group \(group) --calls --local 127.0.0.1:0 --seconds 20 --json >\(log)"
        let push = try ToolRun.finished(
            "sip",
            "push",
            "--group",
            group,
            "--payload",
            payload,
            "--launch",
            command,
            "--json"
        )
        #expect(push.status == 0, "\(push.errors)")
        let answer = try ToolRun.finished("provider", "act", "--group", group, "answer")
        let told = { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
        #expect(answer.status == 0, "\(answer.output)\(answer.errors)\(told())")
        #expect(calling.wait() == 0, "\(calling.errors)")
        #expect(Polling.wait { told().contains(#""outcome":"talked""#) })
        let status = try ToolRun.finished("core", "status", "--group", group, "--json").json()
        #expect(status["calls"] as? Int == 1)
        let owner = try #require((status["owner"] as? [String: Any])?["pid"] as? Int)
        kill(pid_t(owner), SIGINT)
        #expect(Polling.wait { told().contains(#""event":"stopped""#) })
        end()
    }
}
