/// What the command line asks for.
package struct Options: Sendable {
    package struct Wrong: Error, CustomStringConvertible {
        package let description: String

        package init(description: String) { self.description = description }
    }

    package var only: Set<String> = []
    var speechPath: String?
    var toolPath: String?
    package var repetitions = 3
    package var seconds = 4
    var legs = 20
    package var rounds = 20
    package var calls = 100
    var slack = 1.0
    var isJSON = false

    /// - Parameters:
    ///   - arguments: What stands behind the program's name.
    ///   - names: What can be measured.
    ///   - runsTool: Whether some of it runs the tool.
    /// - Throws: `Wrong` with a sentence, or with the names for --list
    init(_ arguments: some Sequence<String>, names: [String], runsTool: Bool) throws {
        var remaining = Array(arguments)[...]
        func value(_ option: String) throws -> String {
            guard let value = remaining.popFirst() else { throw Wrong(description: "\(option) needs a value") }
            return value
        }
        func number(_ option: String) throws -> Int {
            let text = try value(option)
            guard let number = Int(text), number > 0 else { throw Wrong(description: "\(option) \(text) is no count") }
            return number
        }
        while let argument = remaining.popFirst() {
            switch argument {
            case "--only":
                only = Set(try value(argument).split(separator: ",").map(String.init))
                let unknown = only.subtracting(names)
                guard unknown.isEmpty else { throw Wrong(description: "there is no benchmark \(unknown.sorted()[0])") }
            case "--speech": speechPath = try value(argument)
            case "--tool" where runsTool: toolPath = try value(argument)
            case "--repeat": repetitions = try number(argument)
            case "--seconds": seconds = try number(argument)
            case "--legs": legs = max(try number(argument), 2)
            case "--rounds" where runsTool: rounds = try number(argument)
            case "--calls" where runsTool: calls = try number(argument)
            case "--slack":
                let text = try value(argument)
                guard let number = Double(text), number >= 1 else {
                    throw Wrong(description: "--slack \(text) is not 1 or more")
                }
                slack = number
            case "--json": isJSON = true
            case "--list": throw Wrong(description: names.joined(separator: " "))
            default: throw Wrong(description: "\(argument) is not understood")
            }
        }
    }

    /// The path of the tool for a benchmark; nil where neither that is given nor the benchmark was asked for by name.
    ///
    /// - Throws: `Wrong` where it was, and there is no path
    package func tool(for name: String) throws -> String? {
        if toolPath == nil, only.contains(name) { throw Wrong(description: "give the tool's path with --tool") }
        return toolPath
    }

    static func usage(of program: String, runsTool: Bool) -> String {
        let lines = [
            "usage: \(program) [--only NAME,…] [--speech F.wav] [--repeat K=3] [--seconds S=4] [--legs N=20] [--slack F=1]",
            "       " + (runsTool ? "[--tool PATH] [--rounds R=20] [--calls N=100] " : "") + "[--json] [--list]",
            "  --only     run these alone; --list prints their names",
            "  --speech   a WAV to send; without it a chirp with pauses",
            "  --repeat   how often each is measured; the least disturbed counts",
            "  --seconds  how long each run over the network lasts",
            "  --legs     legs of the unpaced benchmarks",
            "  --slack    how many times a limit a figure may have, for machines that are busy",
        ]
        let tool = [
            "  --tool     the release build of media-tool, for \"tool\", \"texts\", \"roaming\" and \"wake\", and with the trait",
            "             FaultPoints for \"storm\" and \"call-storm\"",
            "  --rounds   rounds of the storms",
            "  --calls    calls of \"agent-calls\", which has 300 besides",
        ]
        let end = "Exit 0 when every limit is kept, 1 when one is missed or could not be measured, 64 on wrong usage."
        return (lines + (runsTool ? tool : []) + [end]).joined(separator: "\n")
    }
}
