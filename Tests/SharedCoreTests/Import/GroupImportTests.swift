import Foundation
import Glibc
import LocalMessaging
import Testing

@testable import SharedCore

@Suite struct GroupImportTests {
    let old: TemporaryDirectory
    let group: TemporaryDirectory
    let store: SharedStore

    init() throws {
        old = try TemporaryDirectory()
        group = try TemporaryDirectory()
        store = try SharedStore(group: group.group)
    }

    var work: GroupImport {
        GroupImport(
            group: group.group,
            sources: [
                .configuration: old.path + "/config", .data: old.path + "/data", .downloads: old.path + "/downloads",
            ]
        )
    }

    /// Puts files into the old directory.
    func fill() throws {
        try old.write("[sip]\n", to: "config/rc")
        try old.write(String(repeating: "x", count: 600_000), to: "data/friends.db")
        try old.write("1", to: "downloads/2024/photos/1.jpg")
        try old.write("", to: "downloads/empty")
    }

    @Test func `files come into the group once`() async throws {
        try fill()
        chmod(old.path + "/data/friends.db", 0o644)
        let epoch = try await store.beginEpoch()
        let report = try await work.run(store: store, as: epoch)
        #expect(
            report.copied.sorted() == [
                "config/rc", "data/friends.db", "downloads/2024/photos/1.jpg", "downloads/empty",
            ]
        )
        #expect(report.skipped.isEmpty && report.alreadyImported.isEmpty)
        #expect(group.text(of: "config/rc") == "[sip]\n")
        #expect(group.text(of: "data/friends.db")?.count == 600_000)
        #expect(group.text(of: "downloads/2024/photos/1.jpg") == "1")
        #expect(old.text(of: "config/rc") == "[sip]\n")
        var status = stat()
        #expect(stat(group.path + "/data/friends.db", &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(stat(group.path + "/downloads/2024", &status) == 0 && status.st_mode & 0o777 == 0o700)
        try old.write("later", to: "config/later")
        unlink(group.path + "/config/rc")
        let again = try await work.run(store: store, as: epoch)
        #expect(again.alreadyImported == [.configuration, .data, .downloads] && again.copied.isEmpty)
        #expect(group.text(of: "config/rc") == nil)
        #expect(try group.names(in: ".import").isEmpty)
    }

    @Test func `names are flushed, also those that an earlier run left behind`() throws {
        try old.write("1", to: "data/photos/1.jpg")
        for _ in 0..<2 {
            let copy = try TreeCopy(group: group.path)
            _ = try copy.copy(.data, from: old.path + "/data")
            #expect(copy.flushed == ["data/photos", "data", "."])
        }
    }

    @Test func `what the group has is never overwritten`() async throws {
        try fill()
        try group.write("new", to: "config/rc")
        try group.write("a file where a directory would go", to: "downloads/2024")
        let epoch = try await store.beginEpoch()
        let report = try await work.run(store: store, as: epoch)
        #expect(
            Set(report.skipped) == [
                GroupImport.Skip(path: "config/rc", reason: .exists),
                GroupImport.Skip(path: "downloads/2024", reason: .exists),
            ]
        )
        #expect(group.text(of: "config/rc") == "new")
        #expect(Set(report.copied) == ["data/friends.db", "downloads/empty"])
    }

    @Test func `links and special files are neither followed nor copied`() async throws {
        try old.write("secret", to: "secret/key")
        try old.write("1", to: "data/1")
        symlink(old.path + "/secret/key", old.path + "/data/link")
        symlink(old.path + "/secret", old.path + "/data/directory-link")
        symlink("/nowhere", old.path + "/data/dangling")
        mkfifo(old.path + "/data/pipe", 0o600)
        symlink(old.path + "/secret", old.path + "/config")
        let epoch = try await store.beginEpoch()
        let report = try await work.run(store: store, as: epoch)
        #expect(report.copied == ["data/1"])
        #expect(
            Set(report.skipped) == [
                GroupImport.Skip(path: "config", reason: .symbolicLink),
                GroupImport.Skip(path: "data/link", reason: .symbolicLink),
                GroupImport.Skip(path: "data/directory-link", reason: .symbolicLink),
                GroupImport.Skip(path: "data/dangling", reason: .symbolicLink),
                GroupImport.Skip(path: "data/pipe", reason: .specialFile),
                GroupImport.Skip(path: "downloads", reason: .missing),
            ]
        )
        #expect(try group.names(in: "data") == ["1"])
    }

    @Test func `a link in the group leads nothing out of it`() async throws {
        try fill()
        let elsewhere = try TemporaryDirectory()
        symlink(elsewhere.path, group.path + "/data")
        let epoch = try await store.beginEpoch()
        let error = await #expect(throws: StoreError.self) { try await work.run(store: store, as: epoch) }
        #expect(error?.code == .system)
        #expect(try elsewhere.names(in: "").isEmpty)
    }

    @Test func `a source that holds the group does not copy it into itself`() async throws {
        try old.write("1", to: "one")
        let inner = old.path + "/group"
        mkdir(inner, 0o700)
        let store = try SharedStore(group: GroupContainer(directory: inner))
        let epoch = try await store.beginEpoch()
        let work = try GroupImport(group: GroupContainer(directory: inner), sources: [.data: old.path])
        let report = try await work.run(store: store, as: epoch)
        #expect(report.copied == ["data/one"])
        #expect(report.skipped == [GroupImport.Skip(path: "data/group", reason: .isGroup)])
    }

    @Test func `a source that is missing is looked for again`() async throws {
        let epoch = try await store.beginEpoch()
        let first = try await work.run(store: store, as: epoch)
        #expect(first.copied.isEmpty && first.skipped.allSatisfy { $0.reason == .missing } && first.skipped.count == 3)
        try fill()
        #expect(try await work.run(store: store, as: epoch).copied.count == 4)
    }

    @Test func `directories without end are followed only so far`() async throws {
        let deep = (0..<40).map { "d\($0)" }.joined(separator: "/")
        try old.write("deep", to: "data/\(deep)/file")
        let epoch = try await store.beginEpoch()
        let report = try await work.run(store: store, as: epoch)
        #expect(report.copied.isEmpty)
        #expect(report.skipped.filter { $0.reason == .tooDeep }.count == 1)
    }

    @Test func `only the owner imports`() async throws {
        try fill()
        let epoch = try await store.beginEpoch()
        let fence = try await store.fence()
        let error = await #expect(throws: StoreError.self) { try await work.run(store: store, as: epoch) }
        #expect(error?.code == .fenced(epoch: epoch, current: fence))
        #expect(group.text(of: "config/rc") == nil)
    }
}
