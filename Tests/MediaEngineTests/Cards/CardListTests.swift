import CallBasics
import Foundation
import MediaEngineTesting
import Testing

@testable import MediaEngine

private let configuration = CardConfiguration(format: AudioFormat(sampleRate: 48_000))

@Suite struct CardListTests {
    @Test func `cards are found by name, identity, role and PCM`() throws {
        let list = try CardList(devices: [NullCard(), NullCard(name: "spare")], bindings: CardBindings())
        #expect(try list.card(named: "null").description.id == "builtin:null")
        #expect(try list.card(named: "builtin:spare").description.name == "spare")
        #expect(try list.card(named: "spare").description.id == "builtin:spare")
        #expect(try list.card(named: "AU: Audio Unit Receiver") === list.callCard)
        #expect(try list.card(named: "role:AQ") === list.ringerCard)
        #expect(try list.card(named: "alsa:hw:7").description.id == "alsa:hw:7")
    }

    @Test func `a card that is missing is an error that lists what there is`() throws {
        let list = try CardList(devices: [NullCard()], bindings: CardBindings())
        for name in ["nothing", "", "alsa:"] {
            let error = try #require(throws: CardError.self) { try list.card(named: name) }
            #expect(error.code == .unknownCard && error.message.contains("builtin:null"))
        }
    }

    @Test func `the real list has the roles first and the built-in cards`() throws {
        let names = try CardList().cards.map(\.description.name)
        #expect(names.prefix(2) == ["AU: Audio Unit Receiver", "AQ: Audio Queue Device"])
        #expect(names.contains("null") && names.contains("loopback-1"))
    }
}

@Suite struct CardBindingsTests {
    private func bindings(
        file: String? = nil,
        flags: [String: String] = [:],
        environment: [String: String] = [:]
    ) throws -> CardBindings {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("bind-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder.appendingPathComponent("media-engine"),
            withIntermediateDirectories: true
        )
        defer { try? FileManager.default.removeItem(at: folder) }
        try file?.write(to: folder.appendingPathComponent("media-engine/config"), atomically: true, encoding: .utf8)
        return try CardBindings(
            flags: flags,
            environment: environment.merging(["XDG_CONFIG_HOME": folder.path]) { $1 }
        )
    }

    @Test func `a flag wins over the environment, that over the file, that over the default`() throws {
        let file = "# cards\nau = F\n\naq=F2\r\n  AU.Capture =  plughw:CARD=PCH,DEV=0  "
        let none = try bindings()
        #expect(none.callPlayback == CardBinding(device: "default", source: "default") && none == CardBindings())
        let fromFile = try bindings(file: file)
        #expect(fromFile.callPlayback.device == "F" && fromFile.callPlayback.source.hasSuffix("config:2"))
        #expect(fromFile.callCapture.device == "plughw:CARD=PCH,DEV=0" && fromFile.ringer.device == "F2")
        let environment = ["MEDIA_ENGINE_AU": "E", "MEDIA_ENGINE_AU_CAPTURE": "EC", "MEDIA_ENGINE_AQ": ""]
        let fromEnvironment = try bindings(file: file, environment: environment)
        #expect(fromEnvironment.callPlayback == CardBinding(device: "E", source: "environment MEDIA_ENGINE_AU"))
        #expect(fromEnvironment.callCapture.device == "EC" && fromEnvironment.ringer.device == "F2")
        let fromFlag = try bindings(file: file, flags: ["au.playback": "L"], environment: environment)
        #expect(fromFlag.callPlayback == CardBinding(device: "L", source: "flag"))
        #expect(fromFlag.callCapture.device == "EC")
    }

    @Test func `a binding that the application makes must open, and the default need not`() throws {
        var bindings = CardBindings()
        bindings.ringer = CardBinding("null")
        let list = try CardList(devices: [NullCard()], bindings: bindings)
        #expect(list.ringerCard.boundByHand == [.playback] && list.callCard.boundByHand.isEmpty)
    }

    @Test(arguments: [("au default", ":1"), ("au = x\n\nxx = y", ":3"), ("aq =", ":1")])
    func `a wrong line is named`(file: String, place: String) throws {
        let error = try #require(throws: CardError.self) { try bindings(file: file) }
        #expect(error.code == .configuration && error.message.contains("media-engine/config\(place) "))
    }

    @Test func `an unknown flag and a role bound to a role are errors`() throws {
        #expect(throws: CardError.self) { try bindings(flags: ["ax": "x"]) }
        let circle = try bindings(flags: ["aq": "AU: Audio Unit Receiver"])
        #expect(throws: CardError.self) { try CardList(devices: [], bindings: circle) }
    }
}

@Suite struct RoleCardTests {
    @Test func `a role opens what it is bound to, and says why when that does not open`() throws {
        let absent = FaultyCard([ScriptedFault(.unplug, at: .zero)])
        let role = RoleCard(.call, playback: NullCard(), capture: absent)
        #expect(try role.open(.playback, configuration, at: .zero).direction == .playback)
        let error = try #require(throws: CardError.self) { try role.open(.capture, configuration, at: .zero) }
        #expect(error.code == .absent)
    }

    @Test func `the ringer has no capture and no volume of its own`() throws {
        let role = RoleCard(.ringer, playback: NullCard(), capture: nil)
        #expect(role.description.directions == [.playback])
        #expect(throws: CardError.self) { try role.open(.capture, configuration, at: .zero) }
        #expect(try role.volume(.playback) == nil)
        #expect(throws: CardError.self) { try role.setVolume(0.5, .playback) }
    }
}

@Suite struct HardwareIdentityTests {
    /// A tree like /sys with two equal USB headsets, one with a serial number of its own, and a PCI card.
    private func withTree(_ serials: [String?], _ body: (String) throws -> Void) throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("sys-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        let files = FileManager.default
        func write(_ text: String, _ path: String) throws {
            let url = root.appendingPathComponent(path)
            try files.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: url, atomically: true, encoding: .utf8)
        }
        for (index, serial) in serials.enumerated() {
            let device = "devices/pci0000:00/usb1/1-\(index + 1)"
            try write("0d8c\n", "\(device)/idVendor")
            try write("0014\n", "\(device)/idProduct")
            if let serial { try write("\(serial)\n", "\(device)/serial") }
            try write("", "\(device)/1-\(index + 1):1.0/uevent")
            try write("", "class/sound/card\(index)/id")
            try files.createSymbolicLink(
                at: root.appendingPathComponent("class/sound/card\(index)/device"),
                withDestinationURL: root.appendingPathComponent("\(device)/1-\(index + 1):1.0")
            )
        }
        try body(root.resolvingSymlinksInPath().path)
    }

    @Test func `equal USB cards differ by serial number, or by place`() throws {
        try withTree(["A 1", "B2", nil]) { root in
            let identities = HardwareIdentity.distinct((0..<3).map { HardwareIdentity(card: $0, sysfs: root) })
            #expect(identities == ["usb-0d8c:0014-A_1", "usb-0d8c:0014-B2", "usb-1-3"])
        }
        try withTree(["same", "same"]) { root in
            let identities = HardwareIdentity.distinct((0..<2).map { HardwareIdentity(card: $0, sysfs: root) })
            #expect(identities == ["usb-0d8c:0014-same@usb-1-1", "usb-0d8c:0014-same@usb-1-2"])
        }
    }

    @Test func `devices are listed from proc with their directions and use`() throws {
        let root = FileManager.default.temporaryDirectory.appendingPathComponent("proc-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        for (path, text) in [
            ("id", "PCH\n"), ("pcm0p/sub0/status", "closed\n"), ("pcm0c/sub0/status", "state: RUNNING\n"),
            ("pcm3p/sub0/status", "closed\n"), ("codec#0", ""),
        ] {
            let url = root.appendingPathComponent("card1/\(path)")
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try text.write(to: url, atomically: true, encoding: .utf8)
        }
        let cards = ALSAEnumeration.devices(ofCard: 1, identity: "pci-0000:00:1b.0", name: "HDA", proc: root.path)
        #expect(cards.map(\.pcm) == ["plughw:CARD=PCH,DEV=0", "plughw:CARD=PCH,DEV=3"])
        #expect(cards.map(\.description.id) == ["alsa:pci-0000:00:1b.0", "alsa:pci-0000:00:1b.0,3"])
        #expect(cards.map(\.description.directions) == [.duplex, [.playback]])
        #expect(cards.map(\.description.state) == [.inUse, .available])
        #expect(ALSACard.controlName(of: "plughw:CARD=PCH,DEV=3") == "hw:PCH")
        #expect(ALSACard.controlName(of: "hw:1,0") == "hw:1" && ALSACard.controlName(of: "default") == "default")
    }
}
