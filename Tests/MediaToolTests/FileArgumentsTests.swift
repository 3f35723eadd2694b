import ArgumentParser
import Foundation
import Glibc
import TestSupport
import Testing

@testable import media_tool

/// Files of a command line that would destroy each other.
@Suite struct FileArgumentsTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path

    /// Runs `body` in a folder with the file "call", a link to it of each kind, and the folder "sub".
    private func inFolder(_ body: (String) throws -> Void) throws {
        let files = FileManager.default
        try files.createDirectory(atPath: folder + "/sub", withIntermediateDirectories: true)
        defer { try? files.removeItem(atPath: folder) }
        try Data("x".utf8).write(to: URL(fileURLWithPath: folder + "/call"))
        try files.createSymbolicLink(atPath: folder + "/soft", withDestinationPath: "call")
        try files.linkItem(atPath: folder + "/call", toPath: folder + "/hard")
        try files.createSymbolicLink(atPath: folder + "/ahead", withDestinationPath: "sub/new")
        try #require(mkfifo(folder + "/pipe", 0o600) == 0)
        try body(folder)
    }

    @Test(arguments: ["call", "./call", "sub/../call", "soft", "hard"])
    func `an output is no input, by whatever name`(name: String) throws {
        try inFolder { folder in
            var files = FileArguments()
            try files.read("--input", folder + "/call")
            let error = try #require(throws: ValidationError.self) { try files.write("--output", "\(folder)/\(name)") }
            #expect(error.message.contains("--input") && error.message.contains("overwrite"))
        }
    }

    @Test(arguments: [
        ("new", "./new"), ("sub/new", "sub/../sub/new"), ("call", "soft"), ("ahead", "sub/new"), ("pipe", "./pipe"),
    ])
    func `two outputs are two files`(first: String, second: String) throws {
        try inFolder { folder in
            var files = FileArguments()
            try files.write("--output", "\(folder)/\(first)")
            #expect(throws: ValidationError.self) { try files.write("--trace", "\(folder)/\(second)") }
        }
    }

    @Test func `files of their own, what is no file, and what was not named are let through`() throws {
        try inFolder { folder in
            var files = FileArguments()
            try files.read("--input", folder + "/call")
            try files.read("--sdp", nil)
            try files.write("--output", nil)
            try files.write("--output", "/dev/null")
            try files.write("--trace", "/dev/null")
            try files.write("--pcap", folder + "/new")
            try files.write("--metrics", folder + "/sub/new")
            try files.write("--page", folder + "/no/such/folder")
        }
    }

    @Test func `a file that cannot be written is refused before, and others stay as they are`() throws {
        try inFolder { folder in
            for name in ["no/such/folder", "call/new", "sub"] {
                let path = "\(folder)/\(name)"
                let error = try #require(throws: ToolFailure.self) { try FileArguments.checkWritable(path) }
                #expect(error.description.contains(path))
            }
            for name in ["call", "new", "sub/new", "pipe"] { try FileArguments.checkWritable("\(folder)/\(name)") }
            try FileArguments.checkWritable("/dev/null")
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/call")) == Data("x".utf8))
            #expect(!FileManager.default.fileExists(atPath: folder + "/new"))
        }
    }
}
